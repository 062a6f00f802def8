"""A child process that executes a bundle: its start, time limit, end, and the report that it writes line by line.

Lines of a report: `identity FNV`, `step NAME`, `launch INDEX ENTRY BLOCKS THREADS`, `error KIND MESSAGE`, `done`.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from audit import processes
from audit.backends.outcome import Completed, Crashed, LaunchCount, Misdeclared, Outcome, TimedOut, Unsupported
from audit.errors import MachineError
from audit.processes import abort

__all__ = ["abort", "execute", "launches", "reported", "understood"]

NO_ROOM = 74
"""The exit code of a program that could not write: its report, or the copy of a buffer."""

_MESSAGE_LIMIT, _SHOWN = 2000, 200
_WAIT = "error wait "
_LAUNCH = re.compile(r"\d+ (?P<entry>.+) (?P<blocks>\d{1,18}) (?P<threads>\d{1,18})")  # blanks: splits<6, 256>
_NOT_THE_KERNELS = {NO_ROOM: "found no room to write", -signal.SIGXFSZ: "may not write a file of that size"}

Files = dict[str, dict[str, Path]]


def execute(
    command: Sequence[str | Path], report: Path, files: Files, limit: float, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run `command` in its own session for at most `limit` seconds; `files` become `Completed.files`.

    Raises MachineError for what is no kernel's doing, AuditError where the process does not end when it is killed.
    """
    report.unlink(missing_ok=True)
    began = time.monotonic()
    finished = processes.run_process(command, limit, env=env)
    lines, printed_text = reported(report), printed(finished.output, finished.errors)
    if finished.code is None:
        return timed_out(limit, lines, printed_text)
    if lines and lines[-1].startswith(_WAIT):  # the program's own report, just before its limit
        last, where = lines[-2] if len(lines) > 1 else "the start", lines[-1].removeprefix(_WAIT)
        return TimedOut(limit, f"{last}; then {where}"[:_MESSAGE_LIMIT])
    return understood(finished.code, lines, printed_text, files, time.monotonic() - began)


def understood(
    code: int, lines: Sequence[str], printed_text: str, files: Files, seconds: float
) -> Completed | Crashed | Unsupported:
    """The outcome of a process, or of one bundle of a worker, that ended with `code` and left these lines.

    Raises MachineError where there was no room, or where something else than this tool killed it.
    """
    if code == 0 and lines[-1:] == ["done"]:
        try:
            return _completed(lines, files, seconds, printed_text)
        except ValueError as error:
            return Crashed("report", f"an unexpected line in the report: {error}", seconds)
    for line in lines:
        if line.startswith("error room "):
            raise MachineError(f"{line.removeprefix('error room ')}; nothing was judged. Free space, or set TMPDIR")
    if what := _NOT_THE_KERNELS.get(code):
        raise MachineError(f"a kernel's process {what}; nothing was judged. Free space in /dev/shm, or set TMPDIR")
    if code == -signal.SIGKILL:
        raise MachineError(
            "a kernel's process was killed (SIGKILL) by something else than this tool; nothing was judged. Look for an "
            "out-of-memory killer (dmesg), and choose fewer or smaller cases"
        )
    return _crashed(code, lines, printed_text, seconds)


def timed_out(limit: float, lines: Sequence[str], printed_text: str) -> TimedOut:
    """The outcome of a process that was killed at its limit."""
    last = lines[-1] if lines else "the start"
    return TimedOut(limit, f"{last}; it printed: {printed_text}" if printed_text else last)


def printed(output: bytes, errors: bytes) -> str:
    """What a process printed, the first and the last part of it; errors last."""
    parts = [_shortened(stream.decode(errors="replace").strip()) for stream in (output, errors)]
    return "\n".join(filter(None, parts))


def _shortened(text: str) -> str:
    half = _MESSAGE_LIMIT // 2
    if len(text) <= _MESSAGE_LIMIT:
        return text
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def reported(report: Path) -> list[str]:
    """The report's lines so far."""
    return report.read_text(encoding="utf-8", errors="replace").splitlines() if report.exists() else []


def _completed(lines: Sequence[str], files: Files, seconds: float, printed_text: str) -> Completed:
    identity = next((line.partition(" ")[2] for line in lines if line.startswith("identity ")), "")
    return Completed(launches(lines), identity, files, seconds, printed_text)


def launches(lines: Sequence[str]) -> tuple[LaunchCount, ...]:
    """The launches in a report's lines, each with the step that precedes it. ValueError for a malformed line."""
    step, counts = "", []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "step":
            step = rest
        elif word == "launch":
            if (launch := _LAUNCH.fullmatch(rest)) is None:
                raise ValueError(line[:_SHOWN])
            counts.append(LaunchCount(step, launch["entry"], int(launch["blocks"]), int(launch["threads"])))
    return tuple(counts)


def _crashed(code: int, lines: Sequence[str], printed_text: str, seconds: float) -> Crashed | Unsupported:
    for line in lines:
        if line.startswith("error "):
            _, kind, message = (*line.split(" ", 2), "")[:3]
            message = message[:_MESSAGE_LIMIT]
            if kind == "arguments":
                return Misdeclared(message, seconds)
            if kind == "unsupported":
                return Unsupported(message, seconds)
            rest = "\n".join(other for other in printed_text.splitlines() if other != line)  # it is printed there too
            if kind == "assert" and rest:
                message = f"{message}: {rest}"  # the line and the condition, which only the driver prints
            elif rest:
                message = f"{message}; it printed: {rest}"
            return Crashed(kind, message, seconds)
    last = next((line for line in reversed(lines) if line.startswith(("step ", "launch "))), "the start")
    kind = _signal(-code) if code < 0 else f"exit {code}"
    return Crashed(kind, f"after {last}: {printed_text or 'no message'}", seconds)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # some have no name
        return f"signal {number}"
