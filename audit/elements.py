"""The elements of a buffer in its bytes: one code an element, numpy arrays, and the packing of four-bit types."""

from __future__ import annotations

import numpy as np

from audit import formats
from audit.spec import DTYPES, PACKED, Array


def codes_of(data: Array, dtype: str) -> Array:
    """The elements of a buffer's bytes u1[...] as unsigned integers, one an element, in order; a view where none is
    packed."""
    if dtype not in PACKED:
        return data.view(f"u{DTYPES[dtype].itemsize}")
    codes = np.empty(2 * data.size, np.uint8)
    codes[0::2], codes[1::2] = data & 15, data >> 4
    return codes


def numbers_of(codes: Array, dtype: str) -> Array:
    """An array of a dtype from the codes of its elements. A bool is true where its byte is not 0."""
    return formats.as_dtype(dtype, codes) if dtype == "bool" else codes.view(DTYPES[dtype])


def codes_in(array: Array) -> Array:
    """The codes of the elements of an array, of its own shape. Those of four bits leave the upper half empty."""
    codes = array.view(f"u{array.dtype.itemsize}")
    return codes & 15 if _name(array) in PACKED else codes


def bytes_in(array: Array, dtype: str) -> Array:
    """The bytes u1[...] of a C-contiguous array in a buffer of a dtype; a view where none is packed."""
    if dtype not in PACKED:
        return array.reshape(-1).view(np.uint8)
    codes = codes_in(array).reshape(-1)
    return np.asarray(codes[0::2] | codes[1::2] << 4)


def is_number(dtype: np.dtype[np.generic]) -> bool:
    """Whether a dtype is one of floating-point numbers, integers or bool, of numpy or of `ml_dtypes`."""
    return dtype.kind in "fiub" or dtype in DTYPES.values()


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Whether a dtype is one of floating-point numbers, of numpy or of `ml_dtypes`."""
    return dtype in formats.FLOATS


def _name(array: Array) -> str:
    return next((name for name in PACKED if DTYPES[name] == array.dtype), "")
