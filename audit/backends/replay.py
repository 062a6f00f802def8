"""The process that replays bundles on a GPU: `python -m audit.backends.replay`, a worker of `audit.backends.workers`.

Beside the bundle its folder holds `cuda.json` (`ReplayOrder`) and the cubin. The report has the host program's lines:
identity, step, launch, error, done. It adds `mode`, before the steps of each mode, and `refused`, if the machine or the
bundle prevents the replay. Every bundle has its own module, stream and allocations, freed before the next bundle.
`python -m audit.backends.replay --device` prints one line of JSON about the device instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from audit import processes
from audit.backends.child import NO_ROOM
from audit.backends.constants import Variables
from audit.backends.driver import CudaError, Driver, NoDriver, Refused
from audit.backends.launches import ArgumentError, LaunchError, Launches, LaunchEvent, load_kernels, unload
from audit.backends.memory import DeviceBuffers, StrayWrite
from audit.backends.shared_poison import HIGH, NAN, SharedPoison
from audit.bundle import MANIFEST, Bundle, BundledStep
from audit.compile.identity import fnv1a64

ORDER, REPORT = "cuda.json", "cuda.report"
Mode = Literal["plain", "graph"]
_FAILURE, _USAGE = 1, 2
_AFTER = ".after"
_REPEATING = 0.1  # seconds; after so long no further repetition of a step begins


class ReplayOrder(msgspec.Struct, frozen=True):
    """How to replay a bundle; all names are files in the bundle's folder."""

    modes: tuple[Mode, ...]  # run in this order, each with all steps
    cubin: str
    symbols: dict[str, str]  # entry -> its name in the cubin; its position is the index in the report
    saves: dict[Mode, dict[str, dict[str, str]]]  # mode -> step -> buffer -> file


def replay(folder: Path, report: Callable[[str], None]) -> None:
    """Run all steps of the bundle in `folder` in every mode; `report` receives one line at a time.

    Each mode begins with the bundle's own buffers. Afterwards the files of the inputs hold what the first mode left in
    them. After an error only the end of the process frees the device.

    Raises NoDriver or Refused before anything runs. Raises LaunchError, CudaError or StrayWrite if a kernel or its
    launch fails.
    """
    bundle = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Bundle)
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=ReplayOrder)
    cubin = (folder / order.cubin).read_bytes()
    report(f"identity {fnv1a64(cubin)}")
    driver = Driver()
    try:
        driver.enter()
        shared = SharedPoison(driver)
        kernels = load_kernels(driver, cubin, {entry: order.symbols[entry] for entry in bundle.entries})
        buffers = DeviceBuffers(driver, folder, bundle.slots)
        launches = Launches(driver, kernels, buffers)
    except CudaError as error:
        raise Refused(str(error)) from None
    launches.prepare(bundle.launches)
    variables = Variables(driver, cubin, kernels, buffers, bundle.constants)
    indices = {entry: index for index, entry in enumerate(order.symbols)}
    inputs = [slot for slot in bundle.slots if slot.role == "in"]

    def on_end(event: LaunchEvent) -> None:
        report(f"launch {indices[event.entry]} {event.entry} {event.blocks} {event.threads}")

    for mode in order.modes:
        report(f"mode {mode}")
        if mode != order.modes[0]:
            buffers.reset()
        execute = launches.run
        if mode == "graph":  # captured once, before any step loads its inputs: one graph serves all steps
            launches.capture()
            execute = launches.replay
        for index, step in enumerate(bundle.steps):
            report(f"step {step.name}")
            for repetition in _repetitions(bundle.repeats):
                _prepare(buffers, step)
                buffers.point(bundle.tables)
                variables.fill()
                shared.fill((NAN, HIGH)[(index + repetition + (bundle.schedule_seed != 0) + (mode == "graph")) % 2])
                execute(on_end if repetition == 0 else _ignore)
            for name, file in order.saves[mode][step.name].items():
                buffers.save(name, file)
        buffers.check_tails()
        if mode == order.modes[0]:
            for slot in inputs:
                buffers.save(slot.name, slot.file + _AFTER)  # another name: the next mode loads the bundle's own
    for slot in inputs:
        (folder / (slot.file + _AFTER)).replace(folder / slot.file)
    launches.free()
    buffers.free()
    unload(driver, kernels)
    report("done")


def _repetitions(wanted: int) -> Iterator[int]:
    """0, 1, ...: what a kernel keeps between launches may go wrong at a later one. The results of the last count."""
    began = time.monotonic()
    for repetition in range(wanted):
        yield repetition
        if time.monotonic() - began > _REPEATING:
            return


def _prepare(buffers: DeviceBuffers, step: BundledStep) -> None:
    """Load what a step loads, and poison the rest."""
    for name, file in step.loads.items():
        buffers.load(name, file)
    for name, word in step.poison.items():
        buffers.fill(name, bytes.fromhex(word))


def _ignore(_event: LaunchEvent) -> None:
    """Of a repetition, whose launches are not counted."""


def reporting(work: Callable[[Path, Callable[[str], None]], None], folder: Path, name: str) -> int:
    """The exit code of `work(folder, report)`, whose lines, and how it ended, go to the file `name` of the folder."""
    file = (folder / name).open("wb", buffering=0)  # a line is there once it is written

    def report(line: str) -> None:
        try:
            file.write((line.replace("\n", " ") + "\n").encode(errors="replace"))
        except OSError:
            sys.exit(NO_ROOM)

    with file:
        try:
            work(folder, report)
        except NoDriver as error:
            report(f"refused driver {error}")
        except Refused as error:
            report(f"refused device {error}")
        except ArgumentError as error:
            report(f"error arguments {error}")
        except LaunchError as error:
            report(f"error launch {error}")
        except StrayWrite as error:
            report(f"error memory {error}")
        except CudaError as error:
            report(f"refused device {error}" if error.kind == "device" else f"error {error.kind} {error}")
        except (OSError, MemoryError) as error:
            report(f"error room {type(error).__name__}: {error}")
        else:
            return 0
    return _FAILURE


def _describe_device() -> int:
    try:
        print(msgspec.json.encode(Driver().info()).decode())
    except (NoDriver, CudaError) as error:
        print(error, file=sys.stderr)
        return _FAILURE
    return 0


def _serve() -> int:
    """Read folders from standard input, replay their bundles and answer each with an exit code, until one fails."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1) as answers:
        discard = os.open(os.devnull, os.O_WRONLY)
        os.dup2(discard, sys.stdout.fileno())  # kernels print to standard output, which must carry answers only
        for line in sys.stdin:
            code = reporting(replay, Path(line.rstrip("\n")), REPORT)
            print(code, file=answers)
            if code != 0:
                return code
    return 0


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    match arguments:
        case ["--device"]:
            return _describe_device()
        case []:
            return _serve()
    print("usage: python -m audit.backends.replay [--device]", file=sys.stderr)
    return _USAGE


if __name__ == "__main__":
    processes.end_with_parent()
    sys.exit(main(sys.argv[1:]))
