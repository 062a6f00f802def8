"""How the execution of a bundle ended."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec


class LaunchCount(msgspec.Struct, frozen=True):
    """One launch that completed."""

    step: str
    entry: str
    blocks: int
    threads: int  # of each block


class Completed(msgspec.Struct, frozen=True, tag=True):
    """Every step ran. `files[step][buffer]` is the copy of the buffer's file made after that step."""

    launches: tuple[LaunchCount, ...]
    ran_fnv: str  # FNV-1a-64 of the executable, which the process computes from its own file
    files: dict[str, dict[str, Path]]
    seconds: float


class Crashed(msgspec.Struct, frozen=True, tag=True):
    """The process ended early. `kind`: barrier, collective, launch, assert, memory, script, or signal name."""

    kind: str
    message: str
    seconds: float


class TimedOut(msgspec.Struct, frozen=True, tag=True):
    """The process was killed at its limit; `after` is the last line that it reported."""

    limit: float
    after: str


Outcome: TypeAlias = Completed | Crashed | TimedOut


def is_unsupported(outcome: Outcome) -> bool:
    """Whether nothing ran because the backend cannot build the kernel, which says nothing about the kernel."""
    return isinstance(outcome, Crashed) and outcome.kind in ("unsupported", "compile")


def ending(outcome: Outcome) -> str:
    """How an execution ended, as a part of a sentence."""
    match outcome:
        case Completed():
            return "completed"
        case Crashed(kind, message):
            return f"crashed ({kind}): {message}"
        case TimedOut(limit, after):
            return f"time-out: killed after {limit:g} s; last line reported: {after}"
