"""Inputs as their buffers hold them: a floating-point array is rounded once, and what else does not fit is refused.

The rounding happens when inputs are made, so that references, bounds and every hook see exactly what a kernel sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import ml_dtypes
import numpy as np

from audit import formats
from audit.elements import is_float
from audit.errors import ProjectError
from audit.spec import DTYPES, Array, Buffer, Case, Inputs


class Converted(NamedTuple):
    """An array as its buffer holds it, and what was done to it; empty where nothing was."""

    array: Array
    note: str


def converted_inputs(buffers: Iterable[Buffer], case: Case, given: Inputs) -> tuple[Inputs, Mapping[str, str]]:
    """The same inputs, each array as its buffer holds it, and for each that was converted a note.

    Raises ProjectError for an array that does not fit its buffer.
    """
    inputs, notes = dict(given), {}
    for buffer in buffers:
        if buffer.name in given:
            inputs[buffer.name], note = converted(buffer, case, np.asanyarray(given[buffer.name]))
            if note:
                notes[buffer.name] = note
    return inputs, notes


def converted(buffer: Buffer, case: Case, array: Array) -> Converted:
    """An array as a buffer holds it, in the buffer's shape.

    Raises ProjectError for another shape, for numbers that the buffer's dtype does not have, and for integers in place
    of floating-point numbers or the other way round, which only the author can mean.
    """
    if array.shape != buffer.shape(case):
        raise ProjectError(f"input {buffer.name}: expected shape {buffer.shape(case)}, but got {array.shape}")
    kind = buffer.numpy_dtype()
    if array.dtype == kind:
        return Converted(array, "")
    if _holds_codes(buffer, array):
        return Converted(array, "")
    if not (is_float(array.dtype) and is_float(kind)):
        raise ProjectError(
            f"input {buffer.name}: expected dtype {kind}, but got {array.dtype}; write {_conversion(buffer)}"
        )
    return _rounded(buffer, array)


def _holds_codes(buffer: Buffer, array: Array) -> bool:
    """Whether an array holds the codes of the buffer's elements, for a dtype that numpy does not have."""
    kind = buffer.numpy_dtype()
    if kind.isbuiltin == 1 or array.dtype != np.dtype(f"u{kind.itemsize}"):
        return False
    if buffer.packed and array.size and array.max() > 15:
        raise ProjectError(
            f"input {buffer.name}: expected codes of {buffer.dtype}, one an element and at most 15, but got "
            f"{int(array.max())}; give unpacked elements"
        )
    return True


def _rounded(buffer: Buffer, array: Array) -> Converted:
    lost = formats.beyond(buffer.dtype, array)
    if lost.any():
        at = np.unravel_index(int(np.argmax(lost)), lost.shape)
        named = ", ".join(f"{dim.partition('=')[0]}={int(i)}" for dim, i in zip(buffer.dims.split(), at, strict=True))
        greatest = f"{_greatest(buffer.dtype):g}"
        raise ProjectError(
            f"input {buffer.name}: expected numbers that {buffer.dtype} has, to {greatest}, but got "
            f"{float(array[at]):g} at [{named}]; clip them or write {_conversion(buffer)}"
        )
    stored = formats.encoded(buffer.dtype, array)
    with np.errstate(invalid="ignore"):
        wide = np.float64 if array.dtype == np.float64 or buffer.dtype == "f64" else np.float32
        same = (stored.astype(wide) == array.astype(wide)) | np.isnan(stored)
    changed = same.size - int(np.count_nonzero(same))
    return Converted(stored, f"{formats.FLOATS[array.dtype]} to {buffer.dtype}, {share(changed, same.size)}")


def share(changed: int, total: int) -> str:
    """How many elements a conversion rounded, as a part of a sentence."""
    if changed == 0:
        return "no element rounded"
    percent = 100 * changed / total
    return f"{'less than 1' if percent < 1 else int(percent)}% of the elements rounded"


def lines_of(cases: Iterable[Mapping[str, str]]) -> list[str]:
    """The conversions of all cases, a line a buffer: `x: f64 to f32, at most 99% of the elements rounded`."""
    notes: dict[str, list[str]] = {}
    for converted_in in cases:
        for name, note in converted_in.items():
            notes.setdefault(name, []).append(note)
    lines = []
    for name, found in notes.items():
        most = max(found, key=_percent)
        differing = len(set(map(_percent, found))) > 1
        lines.append(f"{name}: {most.replace(', ', ', at most ', 1) if differing else most}")
    return lines


def rounds(note: str) -> bool:
    """Whether a conversion rounded anything."""
    return not note.endswith("no element rounded")


def _percent(note: str) -> float:
    shown = re.search(r", (less than )?(\d+)%", note)
    return 0 if shown is None else 0.5 if shown[1] else int(shown[2])


def _greatest(dtype: str) -> float:
    """The greatest finite number of a floating-point dtype."""
    return float(ml_dtypes.finfo(DTYPES[dtype]).max)  # type: ignore[no-untyped-call]


def _conversion(buffer: Buffer) -> str:
    """The conversion that an author would write, in Python."""
    name = buffer.numpy_dtype().name
    module = "np" if buffer.numpy_dtype().isbuiltin == 1 else "ml_dtypes"
    return f"`.astype({module}.{'bool_' if name == 'bool' else name})`"
