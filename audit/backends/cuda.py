"""The CUDA backend: a bundle and its cubin, replayed on a GPU by a worker process.

`plain` launches one kernel after the other and waits for each; `graph` captures all launches once, before the first
step, and replays that one graph for every step.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from audit.backends import child
from audit.backends.driver import DeviceInfo
from audit.backends.memory import allocated_bytes
from audit.backends.outcome import Completed, Crashed, Outcome, TimedOut
from audit.backends.replay import ORDER, REPORT, Mode, ReplayOrder
from audit.backends.workers import Workers
from audit.bundle import Bundle
from audit.compile.cuda import CubinBuild
from audit.errors import PlanError, ToolMissing

_CUBIN = "cuda.cubin"
_MODULE = "audit.backends.replay"
_DEVICE_LIMIT = 60.0  # seconds; the first look at a GPU that sleeps takes some
_CONTEXT_BYTES = 512 * 2**20  # what the driver takes for itself on the largest devices, a process
_COMMAND = (sys.executable, "-P", "-m", _MODULE)
PLAIN: tuple[Mode, ...] = ("plain",)
BOTH: tuple[Mode, ...] = ("plain", "graph")


def run(
    folder: Path, bundle: Bundle, build: CubinBuild, limit: float, modes: Sequence[Mode] = PLAIN
) -> tuple[Outcome, ...]:
    """Execute a bundle, written to `folder`, with a cubin: an outcome for each of `modes`, or the one that ended all.

    `limit` in seconds, for all modes and, for the first bundle of a worker, the start of its process. Raises
    ToolMissing without a driver or device, PlanError where the device cannot run the cubin or hold the bundle.
    """
    device = require_device()
    refuse(bundle, build, device)
    _prepare(folder, bundle, build, modes)
    with _workers().one(_COMMAND, environment(), needed_bytes(bundle), device.memory) as worker:
        outcome = worker.execute(folder.resolve(), folder / REPORT, {}, limit)
    lines = child.reported(folder / REPORT)
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "refused":
            what, _, message = rest.partition(" ")
            raise ToolMissing(message) if what == "driver" else PlanError(f"case {bundle.case}: {message}")
    starts = [at for at, line in enumerate(lines) if line.startswith("mode ")]
    if not isinstance(outcome, Completed):
        return (_told_apart(outcome, lines[starts[-1]] if starts else ""),)
    parts = [lines[at:end] for at, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return tuple(
        msgspec.structs.replace(outcome, launches=child.launches(part), files=_copies(folder, bundle, mode))
        for mode, part in zip(modes, parts, strict=True)
    )


@functools.cache
def _workers() -> Workers:
    """The pool of this process, made when the first bundle comes. The driver serves their starts in turn."""
    pool = Workers(min(os.cpu_count() or 1, 4), _CONTEXT_BYTES)
    atexit.register(pool.end)
    return pool


def release() -> None:
    """End the workers that wait for bundles, and give their memory on the device back."""
    if _workers.cache_info().currsize:
        _workers().end()


def _prepare(folder: Path, bundle: Bundle, build: CubinBuild, modes: Sequence[Mode]) -> None:
    """Write what the worker needs beside the bundle."""
    saves = {
        mode: {
            step: {name: path.name for name, path in named.items()}
            for step, named in _copies(folder, bundle, mode).items()
        }
        for mode in modes
    }
    symbols = {entry: build.symbols[entry] for entry in build.identity.entries}
    (folder / _CUBIN).write_bytes(build.cubin)
    (folder / ORDER).write_bytes(msgspec.json.encode(ReplayOrder(tuple(modes), _CUBIN, symbols, saves)))


def environment() -> dict[str, str]:
    """This process's environment, in which a child finds this very package."""
    here = str(Path(__file__).resolve().parents[2])
    found = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{found}" if found else here}


@functools.cache
def require_device() -> DeviceInfo:
    """The device, asked for by a process of its own: one that has called CUDA cannot fork any more.

    Raises ToolMissing where there is no driver, no device, or no answer.
    """
    command = [*_COMMAND, "--device"]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DEVICE_LIMIT, env=environment()
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(f"the CUDA driver did not answer within {_DEVICE_LIMIT:g} s; look at nvidia-smi") from None
    if asked.returncode != 0:
        said = asked.stderr.strip().splitlines()
        raise ToolMissing(
            f"--device cuda: {said[-1] if said else f'asking for a device ended with {asked.returncode}'}"
        )
    return msgspec.json.decode(asked.stdout, type=DeviceInfo)


def refuse(bundle: Bundle, build: CubinBuild, device: DeviceInfo) -> None:
    """Raise PlanError where the device cannot load the cubin, or cannot hold the bundle in a process of its own."""
    if not _loads(build.identity.arch, device.arch):
        raise PlanError(
            f"the cubin is {build.identity.arch} code, which {device.name} ({device.arch}) cannot run; "
            f"build it for {device.arch}"
        )
    need = needed_bytes(bundle)
    if need > device.memory:
        raise PlanError(
            f"case {bundle.case}: a replay needs {need:,} bytes on the device, about {_CONTEXT_BYTES:,} of them for "
            f"the driver itself; {device.name} has {device.memory:,}; choose a smaller case"
        )


def needed_bytes(bundle: Bundle) -> int:
    """What a replay takes on the device, in all its modes: every buffer with its guards in whole pages, once, and what
    the driver takes for the process."""
    return sum(map(allocated_bytes, bundle.slots)) + _CONTEXT_BYTES


def _copies(folder: Path, bundle: Bundle, mode: Mode) -> child.Files:
    """Where the copies of `bundle.copies` lie: those of the graph beside those of the plain launches."""
    copies = bundle.copies(folder)
    if mode == "plain":
        return copies
    return {
        step: {name: path.with_name(f"{mode}.{path.name}") for name, path in named.items()}
        for step, named in copies.items()
    }


def _told_apart(outcome: Crashed | TimedOut, mode: str) -> Crashed | TimedOut:
    """The ending of a process, saying so if it was the graph's."""
    if mode != "mode graph":
        return outcome
    if isinstance(outcome, TimedOut):
        return TimedOut(outcome.limit, f"{outcome.after}, as a graph")
    return Crashed(outcome.kind, f"as a graph: {outcome.message}", outcome.seconds)


def _loads(code: str, device: str) -> bool:
    """Code runs on its own major version from its minor one on; with a suffix only where it was built for
    (https://docs.nvidia.com/cuda/cuda-c-programming-guide, binary compatibility)."""
    wanted = re.fullmatch(r"sm_(\d+)(\d)([af]?)", code)
    there = re.fullmatch(r"sm_(\d+)(\d)", device)
    if wanted is None or there is None or wanted[1] != there[1]:
        return False
    return wanted[2] == there[2] if wanted[3] == "a" else int(wanted[2]) <= int(there[2])
