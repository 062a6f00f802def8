"""Arrays that a bound compares: a result and a reference of different shapes are refused, not broadcast.

numpy compares an array of 33 elements with one of 7 x 33 by repeating the first, and nobody notices. A bound that means
it says so: by an index with None, by `reshape` to more dimensions, or by `numpy.broadcast_to`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from audit.spec import Array

Side = Literal["result", "reference"]
_COMPARING = frozenset(
    {np.subtract, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.divide, np.nextafter}
)


class Comparand(np.ndarray[Any, Any]):
    """A result or an array of a reference. It stays one when it is sliced or converted; what is computed from it is an
    ordinary array."""

    side: Side | None = None
    name: str = ""

    def __array_finalize__(self, parent: Any) -> None:
        """A view is of the same side, unless it has more dimensions: somebody has then written where it repeats."""
        if isinstance(parent, Comparand) and self.ndim <= parent.ndim:
            self.side, self.name = parent.side, parent.name

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **keywords: Any) -> Any:
        """Raises ValueError for a comparison of two sides that differ in shape."""
        sides = [one for one in inputs if isinstance(one, Comparand) and one.side]
        if ufunc in _COMPARING and len(sides) == 2 and sides[0].side != sides[1].side:
            first, second = sides
            if first.shape != second.shape:
                raise ValueError(
                    f"expected {first.name} and {second.name} to have one shape, but got {first.shape} and "
                    f"{second.shape}; give the reference the shape of what it is compared with, or write "
                    "numpy.broadcast_to where one value stands for several"
                )
        if outputs := keywords.get("out"):
            keywords["out"] = tuple(map(_plain, outputs))
        return getattr(ufunc, method)(*map(_plain, inputs), **{name: _plain(each) for name, each in keywords.items()})


def comparands(arrays: Mapping[str, Array], side: Side) -> dict[str, Array]:
    """Views of the arrays, by name, that know which side of a comparison they are on."""
    return {name: _of(array, side, f"{side} {name}") for name, array in arrays.items()}


def plain(array: Array) -> Array:
    """The array itself, of no side."""
    return array.view(np.ndarray)


def _of(array: Array, side: Side, name: str) -> Comparand:
    view = np.asarray(array).view(Comparand)
    view.side, view.name = side, name
    return view


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Comparand) else value
