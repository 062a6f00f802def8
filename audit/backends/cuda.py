"""The CUDA backend: a bundle and its cubin, replayed on a GPU by a worker process.

`plain` launches the kernels in turn and waits for each. `graph` captures all launches once, before the first step, and
replays that graph for every step.
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
from audit.backends.outcome import Completed, Crashed, Outcome, TimedOut, Unsupported
from audit.backends.replay import ORDER, REPORT, Mode, ReplayOrder
from audit.backends.workers import Workers
from audit.bundle import Bundle
from audit.compile.cubin_build import CubinBuild
from audit.errors import PlanError, ToolMissing
from audit.processes import package_environment

_CUBIN = "cuda.cubin"
_MODULE = "audit.backends.replay"
_DEVICE_LIMIT = 60.0  # seconds; an idle GPU takes long to answer the first query
_CONTEXT_BYTES = 512 * 2**20  # the driver's own memory for one process, on the largest devices
_COMMAND = (sys.executable, "-P", "-m", _MODULE)
PLAIN: tuple[Mode, ...] = ("plain",)
BOTH: tuple[Mode, ...] = ("plain", "graph")


def run(
    folder: Path, bundle: Bundle, build: CubinBuild, limit: float, modes: Sequence[Mode] = PLAIN
) -> tuple[Outcome, ...]:
    """Execute a bundle, written to `folder`, with a cubin: one outcome for each of `modes`, or the one that ended all.

    `limit` is in seconds and covers all modes. For a worker's first bundle it includes the start of the process. Raises
    ToolMissing without a driver or device, PlanError if the device cannot run the cubin or hold the bundle.
    """
    device = require_device()
    refuse(bundle, build, device)
    _prepare(folder, bundle, build, modes)
    with _workers().one(_COMMAND, package_environment(), needed_bytes(bundle), device.memory) as worker:
        outcome = worker.execute(folder.resolve(), folder / REPORT, {}, limit)
    lines = child.reported(folder / REPORT)
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "refused":
            reason, _, message = rest.partition(" ")
            raise ToolMissing(message) if reason == "driver" else PlanError(f"case {bundle.case}: {message}")
    starts = [at for at, line in enumerate(lines) if line.startswith("mode ")]
    if not isinstance(outcome, Completed):
        return (_with_mode(outcome, lines[starts[-1]] if starts else ""),)
    parts = [lines[at:end] for at, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return tuple(
        msgspec.structs.replace(outcome, launches=child.launches(part), files=_copies(folder, bundle, mode))
        for mode, part in zip(modes, parts, strict=True)
    )


@functools.cache
def _workers() -> Workers:
    """The worker pool of this process, created for its first bundle."""
    pool = Workers(min(os.cpu_count() or 1, 4), _CONTEXT_BYTES)
    atexit.register(pool.end)
    return pool


def release() -> None:
    """End the idle workers and free their memory on the device."""
    if _workers.cache_info().currsize:
        _workers().end()


def _prepare(folder: Path, bundle: Bundle, build: CubinBuild, modes: Sequence[Mode]) -> None:
    """Write the cubin and the worker's order beside the bundle."""
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


@functools.cache
def require_device() -> DeviceInfo:
    """The device. A child process queries it, because a process that has called CUDA cannot fork any more.

    Raises ToolMissing if there is no driver, no device, or no answer.
    """
    command = [*_COMMAND, "--device"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DEVICE_LIMIT, env=package_environment()
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(
            f"--device cuda: the CUDA driver did not answer within {_DEVICE_LIMIT:g} s; check the GPU with nvidia-smi"
        ) from None
    if result.returncode != 0:
        errors = result.stderr.strip().splitlines()
        raise ToolMissing(
            f"--device cuda: {errors[-1] if errors else f'the device query ended with exit code {result.returncode}'}"
        )
    return msgspec.json.decode(result.stdout, type=DeviceInfo)


def refuse(bundle: Bundle, build: CubinBuild, device: DeviceInfo) -> None:
    """Raise PlanError if the device cannot load the cubin, or lacks the memory for the bundle and its process."""
    if not _is_compatible(build.identity.arch, device.arch):
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
    """The device memory of a replay in all its modes: every buffer with its guards, in whole pages, and the driver's
    own memory for the process."""
    return sum(map(allocated_bytes, bundle.slots)) + _CONTEXT_BYTES


def _copies(folder: Path, bundle: Bundle, mode: Mode) -> child.Files:
    """The files of `bundle.copies`; those of the graph are beside those of the plain launches."""
    copies = bundle.copies(folder)
    if mode == "plain":
        return copies
    return {
        step: {name: path.with_name(f"{mode}.{path.name}") for name, path in named.items()}
        for step, named in copies.items()
    }


def _with_mode(outcome: Crashed | TimedOut | Unsupported, mode: str) -> Crashed | TimedOut | Unsupported:
    """The outcome, with a note if the graph was running."""
    if mode != "mode graph" or isinstance(outcome, Unsupported):
        return outcome
    if isinstance(outcome, TimedOut):
        return TimedOut(outcome.limit, f"{outcome.after}, as a graph")
    return Crashed(outcome.kind, f"as a graph: {outcome.message}", outcome.seconds)


def _is_compatible(code: str, device: str) -> bool:
    """A cubin runs on devices of its major version, from its minor version on; with the suffix `a` only on exactly its
    own (https://docs.nvidia.com/cuda/cuda-c-programming-guide, binary compatibility)."""
    built_for = re.fullmatch(r"sm_(\d+)(\d)([af]?)", code)
    present = re.fullmatch(r"sm_(\d+)(\d)", device)
    if built_for is None or present is None or built_for[1] != present[1]:
        return False
    return built_for[2] == present[2] if built_for[3] == "a" else int(built_for[2]) <= int(present[2])
