"""What each parameter of a kernel is given: its buffer or scalar, by the C type and by what the user's file returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from audit.compare.hooks import Values
from audit.compare.signature import Kernel, Parameter
from audit.errors import PlanError
from audit.spec import DTYPES, Array, Buffer, Role

_DTYPES: Mapping[str, str] = {
    "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_storage_t": "e4m3",
    "int": "i32", "int32_t": "i32", "signed": "i32", "signed int": "i32",
    "unsigned": "u32", "unsigned int": "u32", "uint32_t": "u32", "uint": "u32",
    "long long": "i64", "long long int": "i64", "int64_t": "i64", "long": "i64", "long int": "i64", "ptrdiff_t": "i64",
    "unsigned long long": "u64", "unsigned long long int": "u64", "uint64_t": "u64", "size_t": "u64",
    "unsigned long": "u64",
    "unsigned char": "u8", "uint8_t": "u8",
}  # fmt: skip
_NARROW: Mapping[str, type[np.generic]] = {
    "bool": np.uint32, "char": np.int32, "signed char": np.int32, "int8_t": np.int32, "short": np.int32,
    "int16_t": np.int32, "unsigned short": np.uint32, "uint16_t": np.uint32,
}  # fmt: skip
"""Integers of one and two bytes: a launch takes them as a word whose value fits."""


class Room(msgspec.Struct, frozen=True):
    """The size of a buffer that is only written: its extents, or the name of the buffer that it is like."""

    name: str
    extents: tuple[int, ...] = ()
    like: str = ""


def rooms(option: str, words: Sequence[str]) -> dict[str, Room]:
    """Each `y=7,33` or `y=x`, by name. Raises PlanError for any other form."""
    found = {}
    for word in words:
        name, equals, size = word.partition("=")
        parts = size.split(",")
        if not equals or not size or (len(parts) > 1 and not all(part.isdigit() for part in parts)):
            raise PlanError(f"{option}: expected NAME=EXTENT,EXTENT or NAME=OTHER, but got {word!r}")
        numbers = all(part.isdigit() for part in parts)
        found[name] = Room(name, tuple(map(int, parts))) if numbers else Room(name, like=size)
    return found


def buffers_for(
    kernels: Sequence[Kernel], values: Values, outputs: Mapping[str, Room], workspaces: Mapping[str, Room]
) -> tuple[list[Buffer], list[str]]:
    """The buffers of all pointers of the kernels, and what is missing, each in a sentence."""
    buffers: dict[str, Buffer] = {}
    missing: list[str] = []
    pointers = [one for kernel in kernels for one in kernel.parameters if one.pointer]
    written = {one.name for one in pointers if not one.const}
    names = _dimension_names(values)
    for one in pointers:
        if one.name in buffers or values.get(one.name, 0) is None:
            continue
        array = values.get(one.name)
        room = outputs.get(one.name) or workspaces.get(one.name)
        if array is not None and np.ndim(array) > 0 and room is None:
            role: Role = "inout" if one.name in written else "in"
            shape = np.shape(array)
        elif room is not None:
            role = "workspace" if one.name in workspaces else "out"
            shape = room.extents or np.shape(values.get(room.like, ()))
        elif one.name in written:
            missing.append(f"how large is {one.name} ({_declared(one)})? --output {one.name}=EXTENTS, or outputs()")
            continue
        else:
            missing.append(f"what does {one.name} ({_declared(one)}) hold? return an array from inputs()")
            continue
        dtype = dtype_of(one, array)
        if not dtype:
            missing.append(f"what is an element of {one.name} ({_declared(one)})? one of {', '.join(DTYPES)} is needed")
            continue
        dims = " ".join(f"{names.get(size, f'd{at}')}={size}" for at, size in enumerate(shape)) or "one=1"
        buffers[one.name] = Buffer(one.name, dtype, _distinct(dims), role)
    return list(buffers.values()), missing


def dtype_of(parameter: Parameter, array: Any = None) -> str:
    """The dtype of what a pointer points to: by its C type, of vectors too, else by the array. Empty: unknown."""
    name = parameter.type.rpartition(":")[2].strip()
    if name in _DTYPES:
        return _DTYPES[name]
    if name[:-1] in _DTYPES and name[-1:] in "1234":  # float4, uint2
        return _DTYPES[name[:-1]]
    given = np.asarray(array).dtype if array is not None else None
    return next((dtype for dtype, kind in DTYPES.items() if kind == given), "")


def scalar_for(parameter: Parameter, value: Any) -> np.generic | None:
    """A scalar as its parameter takes it. None where no launch can carry it."""
    name = parameter.type.rpartition(":")[2].strip()
    if name in _NARROW:
        return _NARROW[name](value)
    dtype = _DTYPES.get(name)
    if dtype is None and isinstance(value, np.generic):
        return value
    kind = DTYPES.get(dtype or ("f32" if isinstance(value, float) else "i32"))
    return None if kind is None or kind.itemsize < 4 else kind.type(value)


def fitted(buffer: Buffer, array: Any) -> Array:
    """An array as its buffer holds it: rounded to the buffer's type where both are floating point."""
    given, kind = np.asarray(array), buffer.numpy_dtype()
    if given.dtype.kind == "f" and kind.kind == "f":
        return np.ascontiguousarray(given, kind)
    if given.dtype.kind in "iub" and kind.kind in "iu" and buffer.dtype != "e4m3":
        cast = given.astype(kind)
        if np.array_equal(cast, given):
            return np.ascontiguousarray(cast)
    return given


def _dimension_names(values: Values) -> dict[int, str]:
    """Size -> the one integer argument that has this value: the name by which a reader knows the dimension."""
    named: dict[int, list[str]] = {}
    for name, value in values.items():
        if np.ndim(value) == 0 and isinstance(value, int | np.integer) and name.isidentifier():
            named.setdefault(int(value), []).append(name)
    return {size: names[0] for size, names in named.items() if len(names) == 1}


def _distinct(dims: str) -> str:
    words = dims.split()
    names = [word.partition("=")[0] for word in words]
    return " ".join(
        f"d{at}={word.partition('=')[2]}" if names.count(name) > 1 else word
        for at, (name, word) in enumerate(zip(names, words, strict=True))
    )


def _declared(parameter: Parameter) -> str:
    return f"{'const ' if parameter.const else ''}{parameter.type}{'*' if parameter.pointer else ''}"


def extents(option: str, words: Sequence[str], values: Values) -> tuple[int, ...]:
    """One to three extents, each an integer, a scalar input, or `A/B`, which rounds up."""
    return tuple(_extent(option, word.strip(), values) for word in words)


def _extent(option: str, word: str, values: Values) -> int:
    parts = [int(part) if part.isdigit() else values.get(part) for part in word.split("/")]
    numbers = [part for part in parts if isinstance(part, int | np.integer)]
    if len(numbers) != len(parts) or len(parts) > 2 or 0 in numbers[1:]:
        raise PlanError(f"{option}: expected an integer, an integer input, or A/B of these, but got {word!r}")
    return int(numbers[0]) if len(numbers) == 1 else math.ceil(int(numbers[0]) / int(numbers[1]))
