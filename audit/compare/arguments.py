"""What each parameter of the two kernels is given: a buffer, a number or a null pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from audit import formats
from audit.compare.parameters import Parameter
from audit.compare.signature import Signature
from audit.compare.sizes import Room, sample_of, shape_of
from audit.compare.types import Element, element_of, interchangeable, scalar_dtype
from audit.compare.values import Values
from audit.declaration import came
from audit.errors import PlanError, ProjectError
from audit.spec import DTYPES, Array, Buffer, Role

_WORD_OF: Mapping[str, str] = {"u8": "u32", "u16": "u32", "i8": "i32", "i16": "i32"}
"""Integers of one and two bytes: a launch passes them as a word."""


def buffers_for(
    signatures: Sequence[Signature], values: Values, outputs: Mapping[str, Room], workspaces: Mapping[str, Room]
) -> tuple[list[Buffer], list[str]]:
    """The buffers of all pointers of the kernels, the old one's first, and what is missing, each in a sentence."""
    pointers: dict[str, list[Parameter]] = {}
    for signature in signatures:
        for one in signature.parameters:
            if one.pointer:
                pointers.setdefault(one.name, []).append(one)
    buffers: list[Buffer] = []
    missing: list[str] = []
    names = _dimension_names(values)
    for name, declared in pointers.items():
        if name in values and values[name] is None:
            continue
        try:
            buffers.append(_buffer(name, declared, values, outputs.get(name), workspaces.get(name), names))
        except PlanError as error:
            missing.append(str(error))
    return buffers, missing


def _buffer(
    name: str,
    declared: Sequence[Parameter],
    values: Values,
    output: Room | None,
    workspace: Room | None,
    names: Mapping[int, str],
) -> Buffer:
    first = declared[0]
    for one in declared:
        if one.pointers > 1:
            raise PlanError(
                f"{name} ({one.spelled}): expected a pointer to numbers, but got a table of pointers; "
                "pass the buffers as parameters of their own"
            )
    value, room = values.get(name), output or workspace
    written = any(not one.const for one in declared)
    if value is not None and np.ndim(value) == 0:
        raise PlanError(f"{name} ({first.spelled}): expected an array from inputs(), but got {came(value)}")
    if value is not None and room is not None:
        raise PlanError(
            f"{name} ({first.spelled}): expected contents from inputs() or a size from --output, --workspace or "
            "outputs(), but got both; a buffer that the kernel reads and writes needs its contents alone"
        )
    if value is None and room is None:
        question = (
            f"how large is {name} ({first.spelled})? Give --output {name}=EXTENTS, or --workspace for scratch memory, "
            "or return its shape from outputs(); if the kernel reads it first, return its contents from inputs()"
            if written
            else f"what does {name} ({first.spelled}) hold? Return an array from inputs(), or None for a null pointer"
        )
        raise PlanError(question)
    sample = value if room is None else sample_of(room, values)
    elements = [element_of(one, sample) for one in declared]
    element = _agreed(name, declared, elements)
    role: Role = ("inout" if written else "in") if room is None else "scratch" if workspace and not output else "out"
    option = "--workspace" if role == "scratch" else "--output"
    shape = tuple(np.shape(np.asarray(value))) if room is None else shape_of(room, element.lanes, values, option)
    dims = " ".join(f"{names.get(size, f'd{at}')}={size}" for at, size in enumerate(shape)) or "one=1"
    return Buffer(name, element.dtype, _distinct(dims), role)


def _agreed(name: str, declared: Sequence[Parameter], elements: Sequence[Element]) -> Element:
    known = next((one for one in elements if one.dtype), None)
    if known is None:
        raise PlanError(
            f"what is an element of {name} ({declared[0].spelled})? Return an array from inputs() or outputs(), "
            f"whose dtype says so: one of {', '.join(DTYPES)}"
        )
    for one, element in zip(declared, elements, strict=True):
        if not interchangeable(known.dtype, element.dtype):
            raise PlanError(
                f"{name}: expected one type in both kernels, but got {declared[0].spelled} in OLD and {one.spelled} in "
                "NEW; both must take the same bytes"
            )
    return known


def scalar_for(parameter: Parameter, value: Any) -> np.generic:
    """A number as its parameter takes it. Raises PlanError where no launch can pass it, or it does not fit."""
    what = f"{parameter.name} ({parameter.spelled})"
    if value is None or np.ndim(value) > 0:
        raise PlanError(f"{what}: expected a number from inputs(), but got {came(value)}")
    name = scalar_dtype(parameter)
    if not name:
        return _of_unknown_type(what, value)
    kind = DTYPES[_WORD_OF.get(name, name)]
    if name in ("f16", "bf16", "e4m3"):
        raise PlanError(f"{what}: a launch cannot pass this type by value; make it a float, or put it into a buffer")
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            cast: np.generic = kind.type(value)
        if np.isinf(float(cast)) and not np.isinf(np.float64(value)):
            raise PlanError(f"{what}: expected a value that fits, but got {came(value)}")
        return cast
    low, high = _range(name, parameter)
    if np.isnan(value) or value != np.floor(value) or not low <= value <= high:
        raise PlanError(f"{what}: expected an integer from {low} to {high}, but got {came(value)}")
    whole: np.generic = kind.type(int(value))
    return whole


def _of_unknown_type(what: str, value: Any) -> np.generic:
    """A numpy scalar says itself how it is passed."""
    if isinstance(value, np.int32 | np.uint32 | np.int64 | np.uint64 | np.float32 | np.float64):
        return value
    raise PlanError(
        f"{what}: expected a type of C, such as int or float, but got one that the tool does not know; if it has 4 or "
        "8 bytes, return a numpy scalar such as numpy.int32(3); a struct cannot be passed by value"
    )


def _range(dtype: str, parameter: Parameter) -> tuple[int, int]:
    if parameter.type == "bool":
        return 0, 1
    limits = np.iinfo(DTYPES[dtype])
    return int(limits.min), int(limits.max)


def fitted(where: str, buffer: Buffer, value: Array) -> Array:
    """An array as its buffer holds it: rounded to the buffer's type where both are floating point.

    Raises ProjectError for numbers that the type does not hold, which the message names.
    """
    given, kind = np.asarray(value), buffer.numpy_dtype()
    if given.dtype == kind:
        return np.ascontiguousarray(given)
    floating = buffer.dtype in ("e4m3", "bf16") or kind.kind == "f"
    if floating and given.dtype.kind == "f":
        return _rounded(buffer, given)
    cast = _rounded(buffer, given.astype(np.float64)) if floating else None
    if given.dtype.kind in "iub" and not floating:
        cast = given.astype(kind)
        if np.array_equal(cast.astype(object), given.astype(object)):
            return np.ascontiguousarray(cast)
    elif cast is not None and np.array_equal(formats.stored_values(buffer.dtype, cast).astype(np.float64), given):
        return cast
    held = "floating-point numbers" if floating else f"integers that fit {buffer.dtype}"
    raise ProjectError(f"{where}[{buffer.name!r}]: expected {held}, but got {came(given)}{_misfit(given, kind)}")


def _misfit(given: Array, kind: np.dtype[Any]) -> str:
    if given.dtype.kind not in "iu" or kind.kind not in "iu" or given.size == 0:
        return "; convert it with astype()"
    return f" with values from {given.min()} to {given.max()}"


def _rounded(buffer: Buffer, given: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(formats.encoded(buffer.dtype, given))


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
    return " ".join(_numbered(names, words))


def _numbered(names: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    for at, (name, word) in enumerate(zip(names, words, strict=True)):
        yield f"d{at}={word.partition('=')[2]}" if names.count(name) > 1 else word
