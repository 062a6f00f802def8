"""Where sums over many tokens are computed: by numpy on the processor, or by torch on another device.

The formulas stand once, in `attention`, `mutations` and `omissions`, in the functions that both libraries name alike:
`place.xp` is the library. What differs is here. All numbers are binary64, products of matrices included, so the two
differ in the order of sums and in the last bit of exp. torch is imported when it is asked for, never before.
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
Placed = Any
"""An array of the place's library, on its device."""

_CACHED_TOKENS = 512


class Place:
    """numpy on the processor; the measure of every other place."""

    xp: Any = np
    name = "numpy"

    def put(self, x: NDArray[Any]) -> Placed:
        """An array here, of the same dtype."""
        return x

    def back(self, x: Placed) -> NDArray[Any]:
        """An array of this place, as numpy has it."""
        return np.asarray(x)

    def full(self, shape: tuple[int, ...], value: float) -> Placed:
        """f64 of one value."""
        return np.full(shape, value, np.float64)

    def decoded(self, codes: NDArray[np.uint8]) -> Placed:
        """The f64 values of e4m3 codes, exact."""
        return formats.E4M3_F32.astype(np.float64)[codes]

    def running_maximum(self, x: Placed) -> Placed:
        """Along axis 1, the largest so far."""
        return np.maximum.accumulate(x, axis=1)

    def mean_of_maximum(self, weights: Placed, values: Placed, center: Placed) -> Placed:
        """sum_j weights[l, j] * max(values[j, d], center[l, d]): the one step that no matrix product gives."""
        total = np.zeros_like(center)
        scratch = np.empty((_CACHED_TOKENS, values.shape[1]))
        for start in range(0, len(values), _CACHED_TOKENS):
            block = values[start : start + _CACHED_TOKENS]
            for line, weight in enumerate(weights[:, start : start + len(block)]):
                total[line] += weight @ np.maximum(block, center[line], out=scratch[: len(block)])
        return total

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """To be held while anything is computed here."""
        yield


NUMPY = Place()


class TorchPlace(Place):
    """torch on a device of its: "cuda", or "cpu" where its arithmetic is to be compared with numpy's.

    `most` bytes at a time are spent on what has a number for each line, token and dimension. One thread at a time
    computes here, and leaves the device's memory to others when it is done.
    """

    def __init__(self, device: str, most: int = 2**29) -> None:
        self.xp = import_module("torch")
        self._device, self._most = device, most
        self._turn = threading.RLock()
        self._values = self.put(formats.E4M3_F32.astype(np.float64))
        on = self.xp.cuda.get_device_name() if device == "cuda" else device
        self.name = f"torch {self.xp.__version__} on {on}"

    def put(self, x: NDArray[Any]) -> Placed:
        return self.xp.from_numpy(np.array(x, order="C")).to(self._device)  # a copy: inputs may be read-only

    def back(self, x: Placed) -> NDArray[Any]:
        return np.asarray(x.cpu().numpy())

    def full(self, shape: tuple[int, ...], value: float) -> Placed:
        return self.xp.full(shape, value, dtype=self.xp.float64, device=self._device)

    def decoded(self, codes: NDArray[np.uint8]) -> Placed:
        return self._values[self.put(codes).int()]

    def running_maximum(self, x: Placed) -> Placed:
        return self.xp.cummax(x, 1).values

    def mean_of_maximum(self, weights: Placed, values: Placed, center: Placed) -> Placed:
        total = self.xp.zeros_like(center)
        step = max(1, self._most // (8 * center.numel()))
        for start in range(0, len(values), step):
            larger = self.xp.maximum(values[start : start + step], center[:, None])
            total += (weights[:, None, start : start + step] @ larger)[:, 0]
        return total

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        with self._turn:
            yield
            if self._device == "cuda":
                self.xp.cuda.empty_cache()


_finding = threading.Lock()


def gpu() -> Place:
    """The GPU, where torch is installed and sees one; else numpy. The same to every thread."""
    with _finding:
        return _found()


@functools.cache
def _found() -> Place:
    try:
        torch = import_module("torch")
    except ImportError:
        return NUMPY
    return TorchPlace("cuda") if torch.cuda.is_available() else NUMPY
