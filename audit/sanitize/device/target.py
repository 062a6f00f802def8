"""The process that a GPU's sanitizer watches: `python -P -m audit.sanitize.device.target FOLDER...`.

It launches each folder's bundle, of the policy `exact`, plainly, one kernel after the other, and copies nothing back;
the first that ends badly is the last. Beside the bundle a folder holds `sanitize.json` (`Order`) and the cubin. In
every step each buffer is an allocation of its own, new and of just its size: an access behind it meets no other, and
what no kernel of this step wrote nobody wrote.
The report has the lines of `audit.backends.replay`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_uint64, c_void_p
from pathlib import Path

import msgspec
import numpy as np

from audit import processes, sparse
from audit.arena import Slot
from audit.backends.driver import CudaError, Driver, Refused
from audit.backends.launches import Launches, LaunchEvent, load_kernels
from audit.backends.replay import reporting
from audit.bundle import MANIFEST, Bundle, BundledStep
from audit.compile.identity import fnv1a64

ORDER, REPORT = "sanitize.json", "sanitize.report"
_USAGE = 2
_NON_BLOCKING = 1


class TargetOrder(msgspec.Struct, frozen=True):
    """How a bundle is to be launched; `cubin` is a file of the bundle's folder."""

    cubin: str
    symbols: dict[str, str]  # entry -> its name inside the cubin; its place is the index that is reported
    poison: bool  # whether outputs and workspaces are filled; filled memory counts as written for initcheck


class ExactBuffers:
    """One step's buffers, each an allocation of its own; they are gone after `free`."""

    def __init__(self, driver: Driver, folder: Path, slots: Sequence[Slot], step: BundledStep, poison: bool) -> None:
        """Allocate all and load the inputs as the step has them; without `poison` nothing else is touched."""
        self._driver, self._folder = driver, folder
        self._slots = {slot.name: slot for slot in slots}
        self._bases: dict[str, int] = {}
        for slot in slots:
            base = c_uint64()
            driver.call("cuMemAlloc_v2", byref(base), max(1, slot.file_size))
            self._bases[slot.name] = base.value
            if slot.role == "in":
                self._upload(slot.file, base.value, slot.file_size)
        for name, file in step.loads.items():
            self._upload(file, self.address(name), self.size(name))
        if poison:
            for name, word in step.poison.items():
                data = np.frombuffer(bytes.fromhex(word) * (self.size(name) // 8 + 1), np.uint8)[: self.size(name)]
                driver.call("cuMemcpyHtoD_v2", self.address(name), data.ctypes.data, data.nbytes)

    def address(self, name: str) -> int:
        """Where the data of a buffer start."""
        return self._bases[name] + self._slots[name].offset

    def size(self, name: str) -> int:
        """The bytes of its data."""
        return self._slots[name].size

    def free(self) -> None:
        """Give all of them back."""
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
    """All steps of the bundle in `folder`; `report` takes one line at a time.

    Raises NoDriver or Refused before anything runs, LaunchError or CudaError for what a kernel or its launch did.
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

    def on_end(seen: LaunchEvent) -> None:
        report(f"launch {indices[seen.entry]} {seen.entry} {seen.blocks} {seen.threads}")

    for step in bundle.steps:
        report(f"step {step.name}")
        buffers = ExactBuffers(driver, folder, bundle.slots, step, order.poison)
        launches = Launches(driver, kernels, buffers, stream)
        launches.prepare(bundle.launches)
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
