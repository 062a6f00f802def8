"""The process that compute-sanitizer watches: `python -P -m audit.sanitize.device.target FOLDER...`.

It launches the kernels of each folder's bundle (policy `exact`) in turn, copies nothing back, and stops at the first
bundle that fails. Beside the bundle a folder holds `sanitize.json` (`TargetOrder`) and the cubin. Every step allocates
each buffer anew, with exactly its size. So an access behind it hits no other buffer, and memory that no kernel of the
step wrote is unwritten. The report has the lines of `audit.backends.replay`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_uint64, c_void_p
from pathlib import Path

import msgspec
import numpy as np

from audit import processes, sparse
from audit.arena import INITIALISED, Slot
from audit.backends.constants import Variables
from audit.backends.driver import CudaError, Driver, Refused
from audit.backends.launches import Launches, LaunchEvent, load_kernels, table_of
from audit.backends.replay import reporting
from audit.bundle import MANIFEST, Bundle, BundledStep
from audit.compile.identity import fnv1a64

ORDER, REPORT = "sanitize.json", "sanitize.report"
_USAGE = 2
_NON_BLOCKING = 1


class TargetOrder(msgspec.Struct, frozen=True):
    """How to launch a bundle; `cubin` is a file in the bundle's folder."""

    cubin: str
    symbols: dict[str, str]  # entry -> its name in the cubin; its position is the index in the report
    poison: bool  # whether to fill outputs and workspaces; initcheck takes filled memory as written


class ExactBuffers:
    """One step's buffers, each its own allocation, until `free`."""

    def __init__(self, driver: Driver, folder: Path, slots: Sequence[Slot], step: BundledStep, poison: bool) -> None:
        """Allocate all buffers and load the step's inputs. With `poison`, fill the others."""
        self._driver, self._folder = driver, folder
        self._slots = {slot.name: slot for slot in slots}
        self._bases: dict[str, int] = {}
        for slot in slots:
            base = c_uint64()
            driver.call("cuMemAlloc_v2", byref(base), max(1, slot.file_size))
            self._bases[slot.name] = base.value
            if slot.role in INITIALISED:
                self._upload(slot.file, base.value, slot.file_size)
        for name, file in step.loads.items():
            self._upload(file, self.address(name), self.size(name))
        if poison:
            for name, word in step.poison.items():
                data = np.frombuffer(bytes.fromhex(word) * (self.size(name) // 8 + 1), np.uint8)[: self.size(name)]
                driver.call("cuMemcpyHtoD_v2", self.address(name), data.ctypes.data, data.nbytes)

    def address(self, name: str) -> int:
        """The device address of a buffer's data."""
        return self._bases[name] + self._slots[name].offset

    def size(self, name: str) -> int:
        """The size of a buffer's data in bytes."""
        return self._slots[name].size

    def free(self) -> None:
        """Free all allocations."""
        for base in self._bases.values():
            self._driver.call("cuMemFree_v2", base)

    def _upload(self, file: str, address: int, size: int) -> None:
        path = self._folder / file
        if path.stat().st_size != size:
            raise Refused(f"{path}: expected {size} bytes, but got {path.stat().st_size}")
        if size:
            self._driver.call("cuMemsetD8_v2", address, 0, size)
            for at, block in sparse.blocks(sparse.mapped(path, 0, size)):
                self._driver.call("cuMemcpyHtoD_v2", address + at, block.ctypes.data, block.nbytes)


def launch(folder: Path, report: Callable[[str], None]) -> None:
    """Run all steps of the bundle in `folder`; `report` receives one line at a time.

    Raises NoDriver or Refused before anything runs, LaunchError or CudaError if a kernel or its launch fails.
    """
    bundle = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Bundle)
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=TargetOrder)
    cubin = (folder / order.cubin).read_bytes()
    report(f"identity {fnv1a64(cubin)}")
    driver, stream = Driver(), c_void_p()
    try:
        driver.enter()
        driver.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        kernels = load_kernels(driver, cubin, {entry: order.symbols[entry] for entry in bundle.entries})
    except CudaError as error:
        raise Refused(str(error)) from None
    indices = {entry: index for index, entry in enumerate(order.symbols)}

    def on_end(event: LaunchEvent) -> None:
        report(f"launch {indices[event.entry]} {event.entry} {event.blocks} {event.threads}")

    for step in bundle.steps:
        report(f"step {step.name}")
        buffers = ExactBuffers(driver, folder, bundle.slots, step, order.poison)
        for name, pointers in bundle.tables.items():
            addresses = table_of(pointers, buffers)
            driver.call("cuMemcpyHtoD_v2", buffers.address(name), addresses.ctypes.data, addresses.nbytes)
        launches = Launches(driver, kernels, buffers, stream)
        launches.prepare(bundle.launches)
        Variables(driver, cubin, kernels, buffers, bundle.constants).fill()
        launches.run(on_end)
        buffers.free()
    report("done")


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    if not arguments:
        print("usage: python -m audit.sanitize.device.target FOLDER...", file=sys.stderr)
        return _USAGE
    codes = (reporting(launch, Path(folder), REPORT) for folder in arguments)
    return next((code for code in codes if code != 0), 0)


if __name__ == "__main__":
    processes.end_with_parent()
    sys.exit(main(sys.argv[1:]))
