"""Named arrays in device memory: filling, copying and comparing them on the device."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import addressof, byref, c_uint64, c_void_p
from pathlib import Path

import numpy as np

from audit.backends.driver import OUT_OF_MEMORY, CudaError, Driver, Refused
from audit.backends.launches import Kernel, load_kernels
from audit.compile.cubin_build import CubinBuild
from audit.compile.cuda import compile_cubin
from audit.spec import Array

_POISON = 0x7FA17FA1  # a NaN read as f32 and as f16
_COUNT, _THREADS, _BLOCKS_A_MULTIPROCESSOR = "count_differing_bytes", 512, 4


class Region:
    """The memory of one array; `address` is the address of its first element."""

    def __init__(self, driver: Driver, size: int, offset: int = 0) -> None:
        """Allocate, with the first element `offset` bytes behind an aligned address. Raises Refused without room."""
        base = c_uint64()
        try:
            driver.call("cuMemAlloc_v2", byref(base), max(1, size + offset))
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            raise Refused(f"the device has no {size:,} free bytes; choose a smaller working set with --axis") from None
        self._driver, self._base, self.size, self.address = driver, base.value, size, base.value + offset

    def free(self) -> None:
        """Free the memory; do not use the region afterwards."""
        self._driver.call("cuCtxSynchronize")
        self._driver.call("cuMemFree_v2", self._base)

    def put(self, array: Array) -> None:
        """Copy an array of the region's size from the host."""
        contiguous = np.ascontiguousarray(array)
        if contiguous.nbytes != self.size:
            raise ValueError(f"expected {self.size} bytes, but got {contiguous.nbytes}")
        self._driver.call("cuMemcpyHtoD_v2", self.address, contiguous.ctypes.data, contiguous.nbytes)
        self._driver.call("cuCtxSynchronize")  # copies from pageable memory may still be in flight

    def get(self) -> Array:
        """The content as bytes, u1 [size]."""
        array = np.empty(self.size, np.uint8)
        self._driver.call("cuMemcpyDtoH_v2", array.ctypes.data, self.address, self.size)
        return array

    def poison(self, stream: c_void_p) -> None:
        """Fill with NaN, except the last bytes of a size that is not a multiple of 4."""
        self._driver.call("cuMemsetD32Async", self.address, _POISON, self.size // 4, stream)

    def copy(self, other: Region, stream: c_void_p) -> None:
        """Copy the bytes of another region of the same size."""
        self._driver.call("cuMemcpyDtoDAsync_v2", self.address, other.address, self.size, stream)


class Arrays:
    """Regions by name, for launches."""

    def __init__(self, *groups: Mapping[str, Region]) -> None:
        self._regions = {name: region for group in groups for name, region in group.items()}

    def address(self, name: str) -> int:
        """The device address of a buffer's data."""
        return self._regions[name].address

    def size(self, name: str) -> int:
        """The size of a buffer's data in bytes."""
        return self._regions[name].size


class DeviceComparison:
    """Counts the bytes in which regions differ, on the device, in one pass over both."""

    def __init__(self, driver: Driver, multiprocessors: int, cubin: bytes, symbols: Mapping[str, str]) -> None:
        self._driver, self._grid = driver, multiprocessors * _BLOCKS_A_MULTIPROCESSOR
        self._kernel: Kernel = load_kernels(driver, cubin, symbols)[_COUNT]
        self._total = Region(driver, 8)

    def begin(self) -> None:
        """Reset the count to 0."""
        self._total.put(np.zeros(1, np.uint64))

    def add(self, a: Region, b: Region, stream: c_void_p) -> None:
        """Add the differing bytes of two regions of equal size; both must start at a multiple of 16."""
        if a.size != b.size or a.address % 16 or b.address % 16:
            raise ValueError(f"expected two aligned regions of equal size, but got {a.size} and {b.size} bytes")
        values = (c_uint64(a.address), c_uint64(b.address), c_uint64(a.size), c_uint64(self._total.address))
        pointers = (c_void_p * 4)(*(addressof(value) for value in values))
        extents = (self._grid, 1, 1, _THREADS, 1, 1, 0)
        self._driver.call("cuLaunchKernel", self._kernel.function, *extents, stream, pointers, None)

    def differing(self, stream: c_void_p) -> int:
        """The number of differing bytes since `begin`."""
        self._driver.call("cuStreamSynchronize", stream)
        return int(self._total.get().view(np.uint64)[0])


def comparison_build(arch: str) -> CubinBuild:
    """The comparison kernel, compiled for an architecture."""
    folder = Path(__file__).parent
    return compile_cubin(folder, folder / "compare.cu", [_COUNT], arch=arch)
