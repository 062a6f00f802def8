"""The CUDA backend: a bundle and its cubin, replayed on a GPU by a child process.

`plain` launches one kernel after the other and waits for each; `graph` captures all launches once, before the first
step, and replays that one graph for every step.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from audit.backends import child
from audit.backends.driver import DeviceInfo
from audit.backends.outcome import Outcome
from audit.backends.replay import ORDER, REPORT, Mode, Order
from audit.build.cuda import CubinBuild
from audit.bundle import Bundle
from audit.errors import PlanError, ToolMissing

_CUBIN = "cuda.cubin"
_MODULE = "audit.backends.replay"
_DEVICE_LIMIT = 60.0  # seconds; the first look at a GPU that sleeps takes some
_CONTEXT_BYTES = 512 * 2**20  # what the driver takes for itself on the largest devices
_AT_ONCE = 4
_places = threading.BoundedSemaphore(_AT_ONCE)  # a replay's start takes longer than its kernels; more only wait


def run(folder: Path, bundle: Bundle, build: CubinBuild, limit: float, mode: Mode = "plain") -> Outcome:
    """Execute a bundle, written to `folder`, with a cubin; `limit` in seconds, the start of the process included.

    Raises ToolMissing without a driver or device, PlanError where the device cannot run the cubin or hold the bundle.
    """
    refuse(bundle, build, require_device())
    command = prepare(folder, bundle, build, mode)
    with _places:
        outcome = child.execute(command, folder / REPORT, bundle.copies(folder), limit, environment())
    for line in child.reported(folder / REPORT):
        word, _, rest = line.partition(" ")
        if word == "refused":
            what, _, message = rest.partition(" ")
            raise ToolMissing(message) if what == "driver" else PlanError(f"case {bundle.case}: {message}")
    return outcome


def prepare(folder: Path, bundle: Bundle, build: CubinBuild, mode: Mode = "plain") -> list[str]:
    """Write what the child needs beside the bundle; the command that replays it, in an `environment()`."""
    folder = folder.resolve()
    saves = {step: {name: path.name for name, path in named.items()} for step, named in bundle.copies(folder).items()}
    symbols = {entry: build.symbols[entry] for entry in build.identity.entries}
    (folder / _CUBIN).write_bytes(build.cubin)
    (folder / ORDER).write_bytes(msgspec.json.encode(Order(mode, _CUBIN, symbols, saves)))
    return [sys.executable, "-P", "-m", _MODULE, str(folder)]


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
    command = [sys.executable, "-P", "-m", _MODULE, "--device"]
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
    """Raise PlanError where the device cannot load the cubin or hold all buffers of the bundle."""
    if not _loads(build.identity.arch, device.arch):
        raise PlanError(
            f"the cubin is {build.identity.arch} code, which {device.name} ({device.arch}) cannot run; "
            f"build it for {device.arch}"
        )
    need = needed_bytes(bundle)
    if _AT_ONCE * (need + _CONTEXT_BYTES) > device.memory:
        raise PlanError(
            f"case {bundle.case}: its buffers need {need:,} bytes on the device; {device.name} has {device.memory:,}, "
            f"of which the driver takes about {_CONTEXT_BYTES:,} a process, with {_AT_ONCE} at once; "
            f"choose a smaller case"
        )


def needed_bytes(bundle: Bundle) -> int:
    """What a replay allocates on the device: every buffer with its guards."""
    return sum(max(1, slot.file_size) for slot in bundle.slots)


def _loads(code: str, device: str) -> bool:
    """Code runs on its own major version from its minor one on; with a suffix only where it was built for
    (https://docs.nvidia.com/cuda/cuda-c-programming-guide, binary compatibility)."""
    wanted = re.fullmatch(r"sm_(\d+)(\d)([af]?)", code)
    there = re.fullmatch(r"sm_(\d+)(\d)", device)
    if wanted is None or there is None or wanted[1] != there[1]:
        return False
    return wanted[2] == there[2] if wanted[3] == "a" else int(wanted[2]) <= int(there[2])
