"""The device's copy and comparison bandwidth, measured in the process that benches."""

from __future__ import annotations

from typing import Any

from audit.backends.driver import Driver
from audit.bench.arrays import DeviceComparison, Region
from audit.bench.clock import Clock
from audit.errors import AuditError
from audit.records.bench import Bandwidth

_SHARE = 64  # an array is this fraction of the device's memory: many times its caches


def bandwidth(driver: Driver, clock: Clock, comparison: DeviceComparison, torch: Any) -> Bandwidth:
    """The rates of a copy and of a comparison in one pass; each moves twice the size of one array."""
    size = driver.info().memory // _SHARE // 4096 * 4096
    a, b = Region(driver, size), Region(driver, size)
    a.poison(clock.stream)
    copied = clock.median(lambda: b.copy(a, clock.stream))
    comparison.begin()
    compared = clock.median(lambda: comparison.add(a, b, clock.stream))
    if comparison.differing(clock.stream):
        raise AuditError(
            f"expected a copy of {size:,} bytes on the device to equal its original, but it differs: "
            "the device is faulty; bench on another one"
        )
    by_torch = None
    if torch is not None:
        tensors = [torch.as_tensor(_Borrowed(region), device="cuda") for region in (a, b)]
        by_torch = _rate(size, clock.median(lambda: torch.equal(*tensors)))
    for region in (a, b):
        region.free()
    return Bandwidth(size, _rate(size, copied), _rate(size, compared), by_torch)


def _rate(size: int, milliseconds: float) -> float:
    """Bytes per second for one pass over two arrays of `size` bytes."""
    return 2 * size / milliseconds * 1000


class _Borrowed:
    """A region for torch, without a copy (https://numba.readthedocs.io, CUDA array interface, version 3)."""

    def __init__(self, region: Region) -> None:
        self.__cuda_array_interface__ = {
            "shape": (region.size,),
            "typestr": "|u1",
            "data": (region.address, False),
            "version": 3,
        }
