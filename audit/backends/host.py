"""The host backend: the same CUDA source, compiled for this CPU and executed as a separate program.

The bundle is lowered to the line protocol of `audit/simt/script.cc`. The program maps the buffers' files, so that a
kernel's writes survive a crash.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from audit.arguments import Argument
from audit.backends import child
from audit.backends.outcome import Outcome, TimedOut, Unsupported
from audit.backends.source_lines import with_lines
from audit.bundle import Bundle, BundledLaunch
from audit.compile.host import HostBuild
from audit.errors import MachineError

_SCRIPT, _REPORT = "host.script", "host.report"
_REPORTING = 2.0  # seconds before the time limit, at which the program says where its threads are


def run(
    folder: Path,
    bundle: Bundle,
    build: HostBuild,
    limit: float,
    threads: int,
    *,
    under: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    errors: str = "",
) -> Outcome:
    """Execute a bundle with a built program; `limit` is in seconds, `threads` counts operating-system threads.

    `under` is a command that runs the program, such as a debugger. `env` is the whole environment. `errors` names a
    file in `folder` that receives the program's standard error.
    """
    if not os.access(build.executable, os.X_OK):
        raise MachineError(
            f"{build.executable}: cannot be executed there; set KERNEL_AUDIT_CACHE to a folder on a file system that "
            "allows it (not mounted noexec)"
        )
    if reason := _refusal(bundle.launches):
        return Unsupported(reason)
    files = bundle.copies(folder)
    (folder / _SCRIPT).write_text(_script(bundle, build, files, threads, errors, limit))
    outcome = child.execute([*under, build.executable, folder / _SCRIPT], folder / _REPORT, files, limit, env)
    if isinstance(outcome, TimedOut):
        return TimedOut(outcome.limit, with_lines(outcome.after, build.executable))
    return outcome


def _refusal(launches: Sequence[BundledLaunch]) -> str:
    """What a launch has that only a GPU does; empty if there is nothing of the kind."""
    for launch in launches:
        if launch.cooperative:
            return f"kernel {launch.entry}: a cooperative launch needs a GPU"
        if launch.cluster:
            return f"kernel {launch.entry}: a launch with clusters of {launch.cluster} blocks needs a GPU"
    return ""


def host_report(folder: Path) -> list[str]:
    """The lines of the program's report so far."""
    return child.reported(folder / _REPORT)


def _script(
    bundle: Bundle, build: HostBuild, files: dict[str, dict[str, Path]], threads: int, errors: str, limit: float
) -> str:
    entries = build.identity.entries
    order = {slot.name: index for index, slot in enumerate(bundle.slots)}
    lines = ["kernel-audit-host 1", *([f"errors {errors}"] if errors else [])]
    lines += [f"report {_REPORT}", f"threads {threads}", f"seed {bundle.schedule_seed}"]
    lines.append(f"limit {max(1, int(1000 * (limit - min(_REPORTING, limit / 5))))}")
    lines += [f"buffer {slot.name} {slot.file} {slot.offset} {slot.size}" for slot in bundle.slots]
    for step in bundle.steps:
        lines.append(f"step {step.name}")
        lines += [f"repeat {bundle.repeats}"] if bundle.repeats > 1 else []
        lines += [f"load {name} {file}" for name, file in step.loads.items()]
        lines += [f"fill {name} {_little_endian(word)}" for name, word in step.poison.items()]
        lines += [
            f"point {name} {' '.join(_target(pointer, order) for pointer in pointers)}"
            for name, pointers in bundle.tables.items()
        ]
        lines += [f"constant {name} {index}" for index, name in enumerate(bundle.constants)]
        for launch in bundle.launches:
            extents = " ".join(str(extent) for extent in (*launch.grid, *launch.block))
            args = " ".join(_word(arg, order) for arg in launch.args)
            lines.append(
                f"launch {entries.index(launch.entry)} {extents} {launch.shared_bytes} {len(launch.args)} {args}"
            )
        lines += ["end"] if bundle.repeats > 1 else []
        lines += [f"save {name} {path.name}" for name, path in files[step.name].items()]
    return "\n".join(lines) + "\n"


def _word(arg: Argument, order: Mapping[str, int]) -> str:
    if arg.kind == "pointers":
        return f"p:{arg.buffer}+0"
    if arg.kind in ("struct", "f16", "bf16", "e4m3", "e5m2"):
        return ",".join((f"bytes:{arg.bits}", *(f"{at}={_target(pointer, order)}" for at, pointer in arg.pointers)))
    if arg.kind == "bool":
        return f"bool:{int(arg.bits, 16)}"
    if arg.kind == "pointer":
        return f"p:{arg.buffer}+{arg.offset}" if arg.buffer else "p:null"
    if arg.kind in ("f32", "f64"):
        return f"{arg.kind}:{_little_endian(arg.bits)}"
    return f"{arg.kind}:{np.frombuffer(bytes.fromhex(arg.bits), f'<{arg.kind[0]}{int(arg.kind[1:]) // 8}')[0]}"


def _target(pointer: Argument, order: Mapping[str, int]) -> str:
    """An address as the script has it: a buffer by its position."""
    return f"{order[pointer.buffer]}+{pointer.offset}" if pointer.buffer else "null"


def _little_endian(bits: str) -> str:
    """The hexadecimal number that bytes in memory order represent."""
    return bytes.fromhex(bits)[::-1].hex()
