"""The process that replays bundles on a GPU: `python -m audit.backends.replay`, a worker of `audit.backends.workers`.

Beside the bundle its folder holds `cuda.json` (`Order`) and the cubin. The report has the host program's lines:
identity, step, launch, error, done; `mode`, before the steps of each; and `refused`, where what stands in the way is
not a kernel. Every bundle has a module, a stream and allocations of its own, which are gone before the next.
`python -m audit.backends.replay --device` prints a line of JSON about the device instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from audit.backends.driver import CudaError, Driver, NoDriver, Refused
from audit.backends.launches import LaunchError, Launches, LaunchEvent, load_kernels, unload
from audit.backends.memory import DeviceBuffers, StrayWrite
from audit.bundle import MANIFEST, Bundle
from audit.compile.identity import fnv1a64

ORDER, REPORT = "cuda.json", "cuda.report"
Mode = Literal["plain", "graph"]
_ENDED_BADLY, _USAGE = 1, 2
_AFTER = ".after"


class ReplayOrder(msgspec.Struct, frozen=True):
    """How a bundle is to be replayed; all names are files of the bundle's folder."""

    modes: tuple[Mode, ...]  # all steps in each, one mode after the other
    cubin: str
    symbols: dict[str, str]  # entry -> its name inside the cubin; its place is the index that is reported
    saves: dict[Mode, dict[str, dict[str, str]]]  # mode -> step -> buffer -> file


def replay(folder: Path, report: Callable[[str], None]) -> None:
    """All steps of the bundle in `folder`, in every mode; `report` takes one line at a time.

    Each mode begins with the buffers as the bundle has them. The inputs' files are left as the first mode left the
    inputs. What an error leaves on the device only the end of the process takes away.

    Raises NoDriver or Refused before anything runs, LaunchError, CudaError or StrayWrite for what a kernel or its launch
    did.
    """
    bundle = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Bundle)
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=ReplayOrder)
    cubin = (folder / order.cubin).read_bytes()
    report(f"identity {fnv1a64(cubin)}")
    driver = Driver()
    try:
        driver.enter()
        kernels = load_kernels(driver, cubin, {entry: order.symbols[entry] for entry in bundle.entries})
        buffers = DeviceBuffers(driver, folder, bundle.slots)
        launches = Launches(driver, kernels, buffers)
    except CudaError as error:
        raise Refused(str(error)) from None
    launches.prepare(bundle.launches)
    indices = {entry: index for index, entry in enumerate(order.symbols)}
    inputs = [slot for slot in bundle.slots if slot.role == "in"]

    def on_end(seen: LaunchEvent) -> None:
        report(f"launch {indices[seen.entry]} {seen.entry} {seen.blocks} {seen.threads}")

    for mode in order.modes:
        report(f"mode {mode}")
        if mode != order.modes[0]:
            buffers.reset()
        execute = launches.run
        if mode == "graph":  # captured once, on the bundle's own inputs and before any step's: it serves all steps
            launches.capture()
            execute = launches.replay
        for step in bundle.steps:
            report(f"step {step.name}")
            for name, file in step.loads.items():
                buffers.load(name, file)
            for name, word in step.poison.items():
                buffers.fill(name, bytes.fromhex(word))
            execute(on_end)
            for name, file in order.saves[mode][step.name].items():
                buffers.save(name, file)
        buffers.check_tails()
        if mode == order.modes[0]:
            for slot in inputs:
                buffers.save(slot.name, slot.file + _AFTER)  # aside: the next mode loads the bundle's own
    for slot in inputs:
        (folder / (slot.file + _AFTER)).replace(folder / slot.file)
    launches.free()
    buffers.free()
    unload(driver, kernels)
    report("done")


def reporting(work: Callable[[Path, Callable[[str], None]], None], folder: Path, name: str) -> int:
    """The exit code of `work(folder, report)`, whose lines, and how it ended, go to the file `name` of the folder."""
    with (folder / name).open("w", buffering=1, encoding="utf-8") as file:  # a line is there once it is written

        def report(line: str) -> None:
            file.write(line.replace("\n", " ") + "\n")

        try:
            work(folder, report)
        except NoDriver as error:
            report(f"refused driver {error}")
        except Refused as error:
            report(f"refused device {error}")
        except LaunchError as error:
            report(f"error launch {error}")
        except StrayWrite as error:
            report(f"error memory {error}")
        except CudaError as error:
            report(f"refused device {error}" if error.kind == "device" else f"error {error.kind} {error}")
        else:
            return 0
    return _ENDED_BADLY


def _describe_device() -> int:
    try:
        print(msgspec.json.encode(Driver().info()).decode())
    except (NoDriver, CudaError) as error:
        print(error, file=sys.stderr)
        return _ENDED_BADLY
    return 0


def _serve() -> int:
    """Replay the bundles whose folders come line by line, until one ends badly; each is answered with its exit code."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1) as answers:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what kernels print is no answer
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
    sys.exit(main(sys.argv[1:]))
