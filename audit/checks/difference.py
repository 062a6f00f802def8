"""How much differs: the largest absolute difference and the largest ulp distance, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audit import formats
from audit.checks.result import Figure, LargestDifference
from audit.checks.view import View
from audit.elements import is_float, numbers_of
from audit.spec import Array, Buffer


def largest_difference(view: View, name: str, at: Array, mine: Array, theirs: Array) -> LargestDifference:
    """How far the elements of one buffer at the positions `at` (in C order) are from what they must equal.

    `mine` and `theirs` hold their bits as unsigned integers, one a position. All of them differ.
    """
    left, right, ulp = as_numbers(view.buffers[name], mine, theirs)
    nans = np.isnan(left).astype(np.int8) + np.isnan(right) if ulp is not None else np.zeros(at.size, np.int8)
    numbers = np.flatnonzero(nans == 0)
    absolute, most, elements = None, None, ["", ""]
    if numbers.size:
        apart = absolute_difference(left[numbers], right[numbers])
        furthest = int(np.argmax(apart))
        absolute, elements[0] = Figure.of(float(apart[furthest])), view.element(name, int(at[numbers[furthest]]))
        if ulp is not None:
            most = int(ulp[numbers].max())
            if ulp[numbers[furthest]] < most:  # else one element is the furthest by both
                furthest = int(np.argmax(ulp[numbers]))
            elements[1] = view.element(name, int(at[numbers[furthest]]))
    one, both = (int(np.count_nonzero(nans == sides)) for sides in (1, 2))
    return LargestDifference(name, at.size, absolute, elements[0], most, elements[1], one, both)


def amount(found: Sequence[LargestDifference]) -> str:
    """How much differs over all buffers, as a part of a sentence: `by at most 2.98e-08 (1 ulp, y[rows=3, n=12])`."""
    parts = []
    known = [(one.absolute.value, one) for one in found if one.absolute]
    if known:
        value, largest = max(known, key=lambda pair: pair[0])
        furthest = max((one for _, one in known), key=lambda one: -1 if one.ulp is None else one.ulp)
        parts.append(_numbers(value, largest, furthest))
    total = sum(one.differing for one in found)
    for count, sides in (
        (sum(one.nan_on_one_side for one in found), "one side"),
        (sum(one.nan_on_both_sides for one in found), "both sides"),
    ):
        if count:
            parts.append(f"{'all' if count == total else count} with NaN on {sides}")
    return ", ".join(parts)


def _numbers(value: float, largest: LargestDifference, furthest: LargestDifference) -> str:
    if value == 0:
        return f"only in the sign of zero ({largest.absolute_at})"
    if furthest.ulp is None:
        return f"by at most {value:.3g} ({largest.absolute_at})"
    if largest.absolute_at == furthest.ulp_at:
        return f"by at most {value:.3g} ({ulp_text(furthest.ulp)}, {furthest.ulp_at})"
    return f"by at most {value:.3g} ({largest.absolute_at}) and {ulp_text(furthest.ulp)} ({furthest.ulp_at})"


def ulp_text(distance: int) -> str:
    """A distance in ulp: exact where it is short enough to read."""
    return f"{distance:,} ulp" if distance < 10**6 else f"{distance:.3g} ulp"


def as_numbers(buffer: Buffer, mine: Array, theirs: Array) -> tuple[Array, Array, Array | None]:
    """The numbers that codes of a buffer stand for, on both sides, and their distances in ulp; None for integers.

    A bool counts as its byte.
    """
    if buffer.dtype == "bool":
        return mine, theirs, None
    left, right = numbers_of(mine, buffer.dtype), numbers_of(theirs, buffer.dtype)
    ulp = formats.ulp_distance(left, right) if is_float(left.dtype) else None
    return formats.stored_values(buffer.dtype, left), formats.stored_values(buffer.dtype, right), ulp


def absolute_difference(left: Array, right: Array) -> Array:
    """|left - right|: in f64 for floating point, exact for integers."""
    if left.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(left.astype(np.float64) - right))
    wide = np.int64 if left.dtype.kind == "i" else np.uint64
    one, other = left.astype(wide), right.astype(wide)
    # Modulo 2**64 the difference of two i64 is right even where an i64 cannot hold it.
    return np.asarray(np.maximum(one, other).astype(np.uint64) - np.minimum(one, other).astype(np.uint64))
