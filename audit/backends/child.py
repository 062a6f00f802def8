"""A child process that executes a bundle: its start, time limit, end, and the report that it writes line by line.

Lines of a report: `identity FNV`, `step NAME`, `launch INDEX ENTRY BLOCKS THREADS`, `error KIND MESSAGE`, `done`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from audit.backends.outcome import Completed, Crashed, LaunchCount, Outcome, TimedOut
from audit.errors import AuditError

_MESSAGE_LIMIT = 2000
_DEATH_LIMIT = 60.0  # seconds; the driver first stops a kernel that does not end
_running: set[subprocess.Popen[bytes]] = set()

Files = dict[str, dict[str, Path]]


def execute(
    command: Sequence[str | Path], report: Path, files: Files, limit: float, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run `command` in its own session for at most `limit` seconds; `files` become `Completed.files`.

    Raises AuditError if the process survives being killed.
    """
    report.unlink(missing_ok=True)
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=env,
    )
    watch(process)
    try:
        _, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        lines = reported(report)
        return TimedOut(limit, lines[-1] if lines else "the start")
    finally:
        end(process)
    return understood(process.returncode, reported(report), errors, files, time.monotonic() - began)


def watch(process: subprocess.Popen[bytes]) -> None:
    """Make `abort` kill this process, which must lead a session."""
    _running.add(process)


def understood(code: int, lines: Sequence[str], errors: bytes, files: Files, seconds: float) -> Completed | Crashed:
    """The outcome of a process, or of a worker's bundle, from its exit code and the lines of its report."""
    if code == 0 and lines[-1:] == ["done"]:
        return _completed(lines, files, seconds)
    return _crashed(code, lines, errors.decode(errors="replace"), seconds)


def reported(report: Path) -> list[str]:
    """The report's lines so far."""
    return report.read_text(encoding="utf-8", errors="replace").splitlines() if report.exists() else []


def abort() -> None:
    """Kill every running child; its run returns Crashed."""
    for process in tuple(_running):
        _kill(process)


def _completed(lines: Sequence[str], files: Files, seconds: float) -> Completed:
    identity = next((line.partition(" ")[2] for line in lines if line.startswith("identity ")), "")
    return Completed(launches(lines), identity, files, seconds)


def launches(lines: Sequence[str]) -> tuple[LaunchCount, ...]:
    """The launches in a report's lines, each with the step that precedes it."""
    step, counts = "", []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "step":
            step = rest
        elif word == "launch":
            _, named = rest.split(" ", 1)
            entry, blocks, threads = named.rsplit(" ", 2)  # an entry may contain blanks: splits<6, 256>
            counts.append(LaunchCount(step, entry, int(blocks), int(threads)))
    return tuple(counts)


def _crashed(code: int, lines: Sequence[str], errors: str, seconds: float) -> Crashed:
    errors = errors.strip()[-_MESSAGE_LIMIT:]
    for line in lines:
        if line.startswith("error "):
            _, kind, message = (*line.split(" ", 2), "")[:3]
            if kind == "assert" and errors:
                message = f"{message}: {errors}"  # only the driver prints the line and the condition
            return Crashed(kind, message[:_MESSAGE_LIMIT], seconds)
    last = next((line for line in reversed(lines) if line.startswith(("step ", "launch "))), "the start")
    kind = signal.Signals(-code).name if code < 0 else f"exit {code}"
    return Crashed(kind, f"after {last}: {errors or 'no message'}", seconds)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group, so that nothing outlives its case. `abort` then ignores it.

    Raises AuditError if the process survives being killed.
    """
    _running.discard(process)
    _kill(process)
    try:
        process.wait(_DEATH_LIMIT)
    except subprocess.TimeoutExpired:
        raise AuditError(
            f"process {process.pid} did not exit within {_DEATH_LIMIT:g} s after SIGKILL, so its GPU is stuck; "
            "reset the GPU or restart the machine before you continue"
        ) from None
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
