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
    printed: str = ""  # by device code, to standard output and error: the first and the last part


class Crashed(msgspec.Struct, frozen=True, tag=True):
    """The process ended early. `kind`: barrier, collective, launch, assert, memory, script, or signal name."""

    kind: str
    message: str
    seconds: float


class TimedOut(msgspec.Struct, frozen=True, tag=True):
    """The process was killed at its limit; `after` is the last line that it reported."""

    limit: float
    after: str


class Unsupported(msgspec.Struct, frozen=True, tag=True):
    """The backend lacks something that the kernel uses, so that nothing was judged. `message` names it and its line."""

    message: str
    seconds: float = 0.0


class Misdeclared(Unsupported, frozen=True, tag=True):
    """The arguments of a launch are not those of its kernel, so that nothing ran. `message` says which."""


Outcome: TypeAlias = Completed | Crashed | TimedOut | Unsupported | Misdeclared


def ending(outcome: Outcome) -> str:
    """How an execution ended, as a part of a sentence."""
    match outcome:
        case Completed():
            return "completed"
        case Crashed(kind, message):
            return f"crashed ({kind}): {message}"
        case TimedOut(limit, after):
            return f"time-out: killed after {limit:g} s; last line reported: {after}"
        case Misdeclared(message):
            return f"the declaration does not fit: {message}; correct `args` of the launch"
        case Unsupported(message):
            return f"not supported here: {message}"
