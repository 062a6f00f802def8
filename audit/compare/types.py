"""C types and the dtypes of their elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from audit.compare.parameters import Parameter
from audit.formats import FLOATS
from audit.spec import DTYPES

_DTYPES: Mapping[str, str] = {
    "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "__nv_fp8_e4m3": "e4m3",
    "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "bfloat16": "bf16",
    "int": "i32", "int32_t": "i32", "signed": "i32", "signed int": "i32",
    "unsigned": "u32", "unsigned int": "u32", "uint32_t": "u32", "uint": "u32",
    "long long": "i64", "long long int": "i64", "int64_t": "i64", "long": "i64", "long int": "i64", "ptrdiff_t": "i64",
    "signed long": "i64", "signed long long": "i64", "ssize_t": "i64", "intptr_t": "i64",
    "unsigned long long": "u64", "unsigned long long int": "u64", "uint64_t": "u64", "size_t": "u64",
    "unsigned long": "u64", "unsigned long int": "u64", "uintptr_t": "u64", "ulonglong": "u64",
    "unsigned char": "u8", "uint8_t": "u8", "uchar": "u8", "__nv_fp8_storage_t": "u8", "bool": "u8", "byte": "u8",
    "char": "i8", "signed char": "i8", "int8_t": "i8",
    "short": "i16", "short int": "i16", "int16_t": "i16", "signed short": "i16",
    "unsigned short": "u16", "unsigned short int": "u16", "uint16_t": "u16", "ushort": "u16",
    "__half_raw": "u16", "__nv_bfloat16_raw": "u16",
}  # fmt: skip
_VECTORS: Mapping[str, tuple[str, int]] = {
    **{f"{name}{lanes}": (dtype, lanes) for lanes in (1, 2, 3, 4) for name, dtype in (
        ("float", "f32"), ("double", "f64"), ("int", "i32"), ("uint", "u32"), ("char", "i8"), ("uchar", "u8"),
        ("short", "i16"), ("ushort", "u16"), ("long", "i64"), ("ulong", "u64"), ("longlong", "i64"),
        ("ulonglong", "u64"),
    )},
    "half2": ("f16", 2), "__half2": ("f16", 2), "__nv_bfloat162": ("bf16", 2), "nv_bfloat162": ("bf16", 2),
    "__nv_fp8x2_e4m3": ("e4m3", 2), "__nv_fp8x4_e4m3": ("e4m3", 4),
}  # fmt: skip
_RAW = frozenset(("u8", "i8", "u16", "i16"))
"""Integers that a source may take for storage of a floating-point format."""


class Element(NamedTuple):
    """What a pointer points to: a dtype, empty where nothing says, and how many of it one element has."""

    dtype: str
    lanes: int


def element_of(parameter: Parameter, array: Any = None) -> Element:
    """The element of a pointer, by its C type; where that is unknown or raw storage, by the array that it gets."""
    stated = _VECTORS.get(parameter.type) or (_DTYPES.get(parameter.type, ""), 1)
    given = None if array is None else np.asarray(array).dtype
    known = given is not None and next((name for name, kind in DTYPES.items() if kind == given), "")
    if known and not stated[0]:
        return Element(known, 1)
    if known and stated[0] in _RAW and DTYPES[known] in FLOATS and DTYPES[known].itemsize == DTYPES[stated[0]].itemsize:
        return Element(known, stated[1])
    return Element(*stated)


def scalar_dtype(parameter: Parameter) -> str:
    """The dtype of a scalar; empty for a type that is not in the table."""
    return _DTYPES.get(parameter.type, "")


def interchangeable(one: str, other: str) -> bool:
    """Whether two kernels may take one buffer as these dtypes: integers may differ in sign."""
    return one == other or not one or not other or (one[0] in "iu" and other[0] in "iu" and one[1:] == other[1:])
