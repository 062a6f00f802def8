"""A child process that executes a bundle and reports line by line: started, limited, ended, understood.

The report's lines: `identity FNV`, `step NAME`, `launch INDEX ENTRY BLOCKS THREADS`, `error KIND MESSAGE`, `done`.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from audit.backends.outcome import Completed, Crashed, LaunchCount, Outcome, TimedOut
from audit.errors import AuditError

_MESSAGE_LIMIT, _SHOWN = 2000, 200
_LAUNCH = re.compile(r"\d+ (?P<entry>.+) (?P<blocks>\d{1,18}) (?P<threads>\d{1,18})")  # blanks: splits<6, 256>
_DEATH_LIMIT = 60.0  # seconds; a driver first takes the device back from a kernel that does not end
_running: set[subprocess.Popen[bytes]] = set()

Files = dict[str, dict[str, Path]]


def execute(
    command: Sequence[str | Path], report: Path, files: Files, limit: float, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run `command` in a session of its own for at most `limit` seconds; `files` become `Completed.files`.

    Raises AuditError where the process does not even end when it is killed.
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
    """From now on `abort` kills this process too, which leads a session."""
    _running.add(process)


def understood(code: int, lines: Sequence[str], errors: bytes, files: Files, seconds: float) -> Completed | Crashed:
    """The outcome of a process, or of one bundle of a worker, that ended with `code` and left these lines."""
    if code == 0 and lines[-1:] == ["done"]:
        try:
            return _completed(lines, files, seconds)
        except ValueError as error:
            return Crashed("report", f"a line that is none of a report: {error}", seconds)
    return _crashed(code, lines, errors.decode(errors="replace"), seconds)


def reported(report: Path) -> list[str]:
    """The report's lines so far."""
    return report.read_text(encoding="utf-8", errors="replace").splitlines() if report.exists() else []


def abort() -> None:
    """Kill every child that is running now; their runs return Crashed."""
    for process in tuple(_running):
        _kill(process)


def _completed(lines: Sequence[str], files: Files, seconds: float) -> Completed:
    identity = next((line.partition(" ")[2] for line in lines if line.startswith("identity ")), "")
    return Completed(launches(lines), identity, files, seconds)


def launches(lines: Sequence[str]) -> tuple[LaunchCount, ...]:
    """The launches that a report's lines tell of, each under the step before it. ValueError for a line that is none."""
    step, found = "", []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "step":
            step = rest
        elif word == "launch":
            if (launch := _LAUNCH.fullmatch(rest)) is None:
                raise ValueError(line[:_SHOWN])
            found.append(LaunchCount(step, launch["entry"], int(launch["blocks"]), int(launch["threads"])))
    return tuple(found)


def _crashed(code: int, lines: Sequence[str], errors: str, seconds: float) -> Crashed:
    said = errors.strip()[-_MESSAGE_LIMIT:]
    for line in lines:
        if line.startswith("error "):
            _, kind, message = (*line.split(" ", 2), "")[:3]
            if kind == "assert" and said:
                message = f"{message}: {said}"  # the line and the condition, which only the driver prints
            return Crashed(kind, message[:_MESSAGE_LIMIT], seconds)
    last = next((line for line in reversed(lines) if line.startswith(("step ", "launch "))), "the start")
    kind = _signal(-code) if code < 0 else f"exit {code}"
    return Crashed(kind, f"after {last}: {said or 'no message'}", seconds)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # some have no name
        return f"signal {number}"


def end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group, unwatched from then on: what a kernel's bug left running must not outlive its case.

    Raises AuditError where the process does not even end when it is killed.
    """
    _running.discard(process)
    _kill(process)
    try:
        process.wait(_DEATH_LIMIT)
    except subprocess.TimeoutExpired:
        raise AuditError(
            f"process {process.pid} still runs {_DEATH_LIMIT:g} s after it was killed: its device does not let go of "
            "it; restart the machine or its GPU before running on"
        ) from None
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
