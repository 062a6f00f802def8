"""The host backend: the same CUDA source, compiled for this CPU, executed as a program of its own.

The bundle is lowered to the line protocol of `audit/simt/program.cc`; the program maps the buffers' files, so
that whatever a kernel did to them is still there after a crash.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from audit.backends.outcome import Completed, Crashed, LaunchCount, Outcome, TimedOut
from audit.build.host import HostBuild
from audit.bundle import Argument, Bundle

_SCRIPT, _REPORT = "host.script", "host.report"
_MESSAGE_LIMIT = 2000
_running: set[subprocess.Popen[bytes]] = set()


def run(folder: Path, bundle: Bundle, build: HostBuild, limit: float, threads: int) -> Outcome:
    """Execute a bundle with a built program; `limit` in seconds, `threads` operating-system threads."""
    files = {
        step.name: {slot.name: folder / f"after{index}.{slot.name}.bin" for slot in bundle.saved}
        for index, step in enumerate(bundle.steps)
    }
    (folder / _SCRIPT).write_text(_script(bundle, build, files, threads))
    report = folder / _REPORT
    report.unlink(missing_ok=True)
    began = time.monotonic()
    process = subprocess.Popen(
        [build.executable, folder / _SCRIPT],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _running.add(process)
    try:
        _, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return TimedOut(limit, _last_line(report))
    finally:
        _kill_group(process)
        _running.discard(process)
    seconds = time.monotonic() - began
    lines = report.read_text().splitlines() if report.exists() else []
    if process.returncode == 0 and lines[-1:] == ["done"]:
        return _completed(lines, files, seconds)
    return _crashed(process.returncode, lines, errors.decode(errors="replace"), seconds)


def abort() -> None:
    """Kill every program that is running now; their runs return Crashed."""
    for process in tuple(_running):
        _kill_group(process)


def _script(bundle: Bundle, build: HostBuild, files: dict[str, dict[str, Path]], threads: int) -> str:
    entries = build.identity.entries
    lines = ["kernel-audit-host 1", f"report {_REPORT}", f"threads {threads}", f"seed {bundle.schedule_seed}"]
    lines += [f"buffer {slot.name} {slot.file} {slot.offset} {slot.size}" for slot in bundle.slots]
    for step in bundle.steps:
        lines.append(f"step {step.name}")
        lines += [f"load {name} {file}" for name, file in step.loads.items()]
        lines += [f"fill {name} {_little_endian(word)}" for name, word in step.poison.items()]
        for launch in bundle.launches:
            extents = " ".join(str(extent) for extent in (*launch.grid, *launch.block))
            args = " ".join(_word(arg) for arg in launch.args)
            lines.append(
                f"launch {entries.index(launch.entry)} {extents} {launch.shared_bytes} {len(launch.args)} {args}"
            )
        lines += [f"save {name} {path.name}" for name, path in files[step.name].items()]
    return "\n".join(lines) + "\n"


def _word(arg: Argument) -> str:
    if arg.kind == "pointer":
        return f"p:{arg.buffer}+{arg.offset}"
    if arg.kind in ("f32", "f64"):
        return f"{arg.kind}:{_little_endian(arg.bits)}"
    return f"{arg.kind}:{np.frombuffer(bytes.fromhex(arg.bits), f'<{arg.kind[0]}{int(arg.kind[1:]) // 8}')[0]}"


def _little_endian(bits: str) -> str:
    """Bytes in memory order, as the hexadecimal number that they are."""
    return bytes.fromhex(bits)[::-1].hex()


def _completed(lines: list[str], files: dict[str, dict[str, Path]], seconds: float) -> Completed:
    step, identity, launches = "", "", []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "step":
            step = rest
        elif word == "identity":
            identity = rest
        elif word == "launch":
            _, named = rest.split(" ", 1)
            entry, blocks, threads = named.rsplit(" ", 2)
            launches.append(LaunchCount(step, entry, int(blocks), int(threads)))
    return Completed(tuple(launches), identity, files, seconds)


def _crashed(code: int, lines: list[str], errors: str, seconds: float) -> Crashed:
    for line in lines:
        if line.startswith("error "):
            _, kind, message = (*line.split(" ", 2), "")[:3]
            return Crashed(kind, message[:_MESSAGE_LIMIT], seconds)
    step = next((line for line in reversed(lines) if line.startswith(("step ", "launch "))), "the start")
    kind = signal.Signals(-code).name if code < 0 else f"exit {code}"
    return Crashed(kind, f"after {step}: {errors.strip()[-_MESSAGE_LIMIT:] or 'no message'}", seconds)


def _last_line(report: Path) -> str:
    lines = report.read_text().splitlines() if report.exists() else []
    return lines[-1] if lines else "the start"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group: a program that a kernel's bug left running must not outlive its case."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr:
        process.stderr.close()
