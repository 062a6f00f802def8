"""The library that computes sums over many tokens: numpy on the CPU, or torch on another device.

`attention`, `mutations` and `omissions` hold the formulas once, in functions that both libraries name alike, through
the module `library.xp`. This file holds what differs. All numbers are binary64, matrix products included, so the two
differ only in the order of sums and in the last bit of exp. torch is imported on first use.
"""

import contextlib
import functools
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit import formats

Array64 = NDArray[np.float64]
DeviceArray = Any
"""An array of the library, on its device."""

_CACHED_TOKENS = 512


class ArrayLibrary:
    """numpy on the CPU, the reference for every other library."""

    xp: Any = np
    name = "numpy"

    def to_device(self, x: NDArray[Any]) -> DeviceArray:
        """The array on the device of this library, in the same dtype."""
        return x

    def to_numpy(self, x: DeviceArray) -> NDArray[Any]:
        """An array of this library as a numpy array."""
        return np.asarray(x)

    def full(self, shape: tuple[int, ...], value: float) -> DeviceArray:
        """An f64 array filled with one value."""
        return np.full(shape, value, np.float64)

    def decoded(self, codes: NDArray[np.uint8]) -> DeviceArray:
        """The f64 values of e4m3 codes, exact."""
        return formats.E4M3_F32.astype(np.float64)[codes]

    def running_maximum(self, x: DeviceArray) -> DeviceArray:
        """The running maximum along axis 1."""
        return np.maximum.accumulate(x, axis=1)

    def mean_of_maximum(self, weights: DeviceArray, values: DeviceArray, center: DeviceArray) -> DeviceArray:
        """sum_j weights[l, j] * max(values[j, d], center[l, d]): the one step that no matrix product gives."""
        total = np.zeros_like(center)
        scratch = np.empty((_CACHED_TOKENS, values.shape[1]))
        for start in range(0, len(values), _CACHED_TOKENS):
            block = values[start : start + _CACHED_TOKENS]
            for line, weight in enumerate(weights[:, start : start + len(block)]):
                total[line] += weight @ np.maximum(block, center[line], out=scratch[: len(block)])
        return total

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold this while computing with the library."""
        yield


NUMPY = ArrayLibrary()


class TorchLibrary(ArrayLibrary):
    """torch on a device: "cuda", or "cpu" to compare its arithmetic with numpy's.

    An array with a number for each line, token and dimension takes at most `most` bytes at a time. Only one thread
    computes at a time; it frees the device memory when it is done.
    """

    def __init__(self, device: str, most: int = 2**29) -> None:
        self.xp = import_module("torch")
        self._device, self._most = device, most
        self._lock = threading.RLock()
        self._values = self.to_device(formats.E4M3_F32.astype(np.float64))
        on = self.xp.cuda.get_device_name() if device == "cuda" else device
        self.name = f"torch {self.xp.__version__} on {on}"

    def to_device(self, x: NDArray[Any]) -> DeviceArray:
        return self.xp.from_numpy(np.array(x, order="C")).to(self._device)  # a copy: inputs may be read-only

    def to_numpy(self, x: DeviceArray) -> NDArray[Any]:
        return np.asarray(x.cpu().numpy())

    def full(self, shape: tuple[int, ...], value: float) -> DeviceArray:
        return self.xp.full(shape, value, dtype=self.xp.float64, device=self._device)

    def decoded(self, codes: NDArray[np.uint8]) -> DeviceArray:
        return self._values[self.to_device(codes).int()]

    def running_maximum(self, x: DeviceArray) -> DeviceArray:
        return self.xp.cummax(x, 1).values

    def mean_of_maximum(self, weights: DeviceArray, values: DeviceArray, center: DeviceArray) -> DeviceArray:
        total = self.xp.zeros_like(center)
        step = max(1, self._most // (8 * center.numel()))
        for start in range(0, len(values), step):
            larger = self.xp.maximum(values[start : start + step], center[:, None])
            total += (weights[:, None, start : start + step] @ larger)[:, 0]
        return total

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield
            if self._device == "cuda":
                self.xp.cuda.empty_cache()


_choosing = threading.Lock()


def gpu_library() -> ArrayLibrary:
    """torch on the GPU where torch is installed and finds one, else numpy. Every thread gets the same object."""
    with _choosing:
        return _chosen()


@functools.cache
def _chosen() -> ArrayLibrary:
    try:
        torch = import_module("torch")
    except ImportError:
        return NUMPY
    return TorchLibrary("cuda") if torch.cuda.is_available() else NUMPY
