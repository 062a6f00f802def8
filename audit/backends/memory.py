"""A bundle's buffers on the device: one allocation for each file, guards included.

An allocation has whole pages of the device. The guard behind the data goes on to the end of the last one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from ctypes import byref, c_size_t, c_uint64
from pathlib import Path

import numpy as np

from audit import sparse
from audit.arena import Slot
from audit.arguments import Argument
from audit.backends.driver import OUT_OF_MEMORY, CudaError, Driver, Refused
from audit.backends.launches import table_of

ALLOCATION_BYTES = 2**21  # the driver maps no less


class StrayWrite(Exception):
    """A kernel wrote behind a buffer and the guard of its file."""


def allocated_bytes(slot: Slot) -> int:
    """What a slot takes on the device."""
    return -(-max(1, slot.file_size) // ALLOCATION_BYTES) * ALLOCATION_BYTES


class DeviceBuffers:
    """One allocation for each slot's file. The data start at `base + slot.offset`, as in the file. Allocations are
    aligned to 256 bytes, so the offset decides the alignment that a kernel sees."""

    def __init__(self, driver: Driver, folder: Path, slots: Sequence[Slot]) -> None:
        """Allocate and load. Raises Refused if a file does not fit its slot or the device lacks memory."""
        self._driver, self._folder = driver, folder
        self._slots = {slot.name: slot for slot in slots}
        self._bases: dict[str, int] = {}
        self._refuse_too_much()
        for slot in slots:
            self._bases[slot.name] = self._allocate(slot)
            if tail := _tail(slot):
                self._driver.call("cuMemcpyHtoD_v2", self._bases[slot.name] + slot.file_size, tail, len(tail))
        self.reset()

    def reset(self) -> None:
        """Load every slot's file again, guards included, which undoes all writes of earlier launches."""
        for slot in self._slots.values():
            self._upload(self._folder / slot.file, self._bases[slot.name], slot.file_size)

    def free(self) -> None:
        """Free all allocations."""
        for base in self._bases.values():
            self._driver.call("cuMemFree_v2", base)

    def address(self, name: str) -> int:
        """The device address of a buffer's data."""
        return self._bases[name] + self._slots[name].offset

    def size(self, name: str) -> int:
        """The size of a buffer's data in bytes."""
        return self._slots[name].size

    def load(self, name: str, file: str) -> None:
        """Replace a buffer's data by a file's content; the guards stay unchanged."""
        self._upload(self._folder / file, self.address(name), self.size(name))

    def fill(self, name: str, word: bytes) -> None:
        """Fill a buffer's data with eight repeated bytes."""
        size = self.size(name)
        pattern = np.frombuffer(word * (min(sparse.BLOCK, size + 8) // 8), np.uint8)
        for at in range(0, size, sparse.BLOCK):
            part = pattern[: size - at]
            self._driver.call("cuMemcpyHtoD_v2", self.address(name) + at, part.ctypes.data, part.nbytes)

    def point(self, tables: Mapping[str, Sequence[Argument]]) -> None:
        """Fill arrays of pointers with the addresses of their buffers."""
        for name, pointers in tables.items():
            addresses = table_of(pointers, self)
            self._driver.call("cuMemcpyHtoD_v2", self.address(name), addresses.ctypes.data, addresses.nbytes)

    def save(self, name: str, file: str) -> None:
        """Write a buffer with its guards to a file, with holes for zeros."""
        slot, block = self._slots[name], np.empty(sparse.BLOCK, np.uint8)
        with (self._folder / file).open("wb") as target:
            os.truncate(target.fileno(), slot.file_size)
            for at in range(0, slot.file_size, sparse.BLOCK):
                part = block[: slot.file_size - at]
                self._driver.call("cuMemcpyDtoH_v2", part.ctypes.data, self._bases[name] + at, part.nbytes)
                if part.any():
                    target.seek(at)
                    target.write(part.data)

    def check_tails(self) -> None:
        """Raise StrayWrite where anything behind a file has changed. Files hold only the guards next to the data."""
        for slot in self._slots.values():
            laid = np.frombuffer(_tail(slot), np.uint8)
            if laid.size == 0:
                continue
            found = np.empty(laid.size, np.uint8)
            self._driver.call(
                "cuMemcpyDtoH_v2", found.ctypes.data, self._bases[slot.name] + slot.file_size, found.nbytes
            )
            changed = np.flatnonzero(found != laid)
            if changed.size:
                past = slot.file_size + int(changed[0]) - slot.offset - slot.size
                raise StrayWrite(
                    f"{changed.size} bytes behind {slot.name} ({slot.size} bytes) were written, the first {past} bytes "
                    "past the end"
                )

    def _refuse_too_much(self) -> None:
        free, total = c_size_t(), c_size_t()
        self._driver.call("cuMemGetInfo_v2", byref(free), byref(total))
        need = sum(map(allocated_bytes, self._slots.values()))
        if need > free.value:
            raise Refused(f"the bundle needs {need:,} bytes on the device; {free.value:,} of {total.value:,} are free")

    def _allocate(self, slot: Slot) -> int:
        base = c_uint64()
        try:
            self._driver.call("cuMemAlloc_v2", byref(base), allocated_bytes(slot))
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            raise Refused(
                f"buffer {slot.name}: the device has no {allocated_bytes(slot):,} contiguous free bytes; "
                "end other processes on it"
            ) from None
        return base.value

    def _upload(self, path: Path, address: int, size: int) -> None:
        """Copy only blocks that are not zero: the largest inputs are sparse files."""
        if path.stat().st_size != size:
            raise Refused(f"{path}: expected {size} bytes, but got {path.stat().st_size}")
        if size == 0:
            return
        self._driver.call("cuMemsetD8_v2", address, 0, size)
        for at, block in sparse.blocks(sparse.mapped(path, 0, size)):
            self._driver.call("cuMemcpyHtoD_v2", address + at, block.ctypes.data, block.nbytes)


def _tail(slot: Slot) -> bytes:
    """The guard's words from the end of the file to the end of the allocation."""
    word, size, phase = bytes.fromhex(slot.guard), allocated_bytes(slot) - slot.file_size, slot.file_size % 8
    return (word * (size // 8 + 2))[phase : phase + size]
