"""Launch arguments as bytes: numbers, structs by value, addresses that only the executing process knows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from audit.declaration import came
from audit.elements import is_number
from audit.spec import At, Buffer, Inputs, Pointers, Struct

MOST_BYTES = 32_764
"""Of all arguments of a launch, on compute capability 7.0 and later: the CUDA programming guide."""
_MOST_POINTERS = 1 << 20
_SCALARS: Mapping[type[Any], str] = {
    np.bool_: "bool",
    np.int8: "i8",
    np.uint8: "u8",
    np.int16: "i16",
    np.uint16: "u16",
    np.int32: "i32",
    np.uint32: "u32",
    np.int64: "i64",
    np.uint64: "u64",
    np.float16: "f16",
    np.float32: "f32",
    np.float64: "f64",
    ml_dtypes.bfloat16: "bf16",
    ml_dtypes.float8_e4m3fn: "e4m3",
    ml_dtypes.float8_e5m2: "e5m2",
}


class Argument(msgspec.Struct, frozen=True):
    """One launch argument. `kind` is `pointer` (buffer and byte offset; no buffer: null), a scalar type (value in hex
    bits), `struct` (bytes in hex, and the pointers in it) or `pointers`: the address of a buffer of its own, which the
    executing process fills with addresses."""

    kind: str
    buffer: str = ""
    offset: int = 0
    bits: str = ""
    pointers: tuple[tuple[int, Argument], ...] = ()  # (byte position, pointer)

    @property
    def target(self) -> str:
        """A pointer in one word: `null`, `x+16`."""
        return f"{self.buffer}+{self.offset}" if self.buffer else "null"


def argument_of(position: int, arg: Any, buffers: Sequence[Buffer], inputs: Inputs) -> Argument:
    """An argument resolved to a buffer or bytes. Raises ValueError for one that no launch can pass."""
    by_name = {buffer.name: buffer for buffer in buffers}
    where = f"argument {position}"
    if arg is None or isinstance(arg, At) or (isinstance(arg, str) and arg in by_name):
        return _pointer(where, arg, by_name)
    if isinstance(arg, Pointers):
        return _table(where, arg, by_name)
    if isinstance(arg, Struct):
        return _struct(where, arg, by_name)
    if isinstance(arg, str):
        if arg not in inputs or np.ndim(inputs[arg]) != 0:
            scalars = [name for name, value in inputs.items() if np.ndim(value) == 0]
            raise ValueError(
                f"{where}: expected a buffer of {list(by_name)} or a scalar input of {scalars}, but got {arg!r}"
            )
        arg = inputs[arg]
    return _number(where, arg)


def table_buffers(launches: Iterable[Sequence[Argument]]) -> tuple[Buffer, ...]:
    """A buffer for each array of pointers, whose name no declaration can give. Nothing is promised of its bytes."""
    tables = {arg.buffer: len(arg.pointers) for args in launches for arg in args if arg.kind == "pointers"}
    return tuple(Buffer(name, "u64", f"pointer={size}", "scratch") for name, size in tables.items())


def _pointer(where: str, arg: Any, by_name: Mapping[str, Buffer]) -> Argument:
    if arg is None:
        return Argument("pointer")
    name = arg.buffer if isinstance(arg, At) else arg
    if not isinstance(name, str) or name not in by_name:
        shown = f"At({name!r})" if isinstance(arg, At) else came(arg)
        raise ValueError(f"{where}: expected a buffer of {list(by_name)}, but got {shown}")
    if by_name[name].role == "constant":
        raise ValueError(f"{where}: {name} is a constant, which a kernel refers to by its name; leave it out")
    return Argument("pointer", name, by_name[name].bytes_of(arg.elements) if isinstance(arg, At) else 0)


def _table(where: str, arg: Pointers, by_name: Mapping[str, Buffer]) -> Argument:
    if not 1 <= len(arg.targets) <= _MOST_POINTERS:
        raise ValueError(f"{where}: expected 1 to {_MOST_POINTERS:,} pointers, but got {len(arg.targets):,}")
    found = [_pointer(f"{where}, pointer {at}", target, by_name) for at, target in enumerate(arg.targets)]
    digest = hashlib.sha256("\n".join(each.target for each in found).encode()).hexdigest()[:12]
    return Argument("pointers", f"pointers.{digest}", pointers=tuple((8 * at, each) for at, each in enumerate(found)))


def _struct(where: str, arg: Struct, by_name: Mapping[str, Buffer]) -> Argument:
    layout = _checked_layout(where, arg.dtype)
    names = list(layout.names or ())
    if set(names) != set(arg.fields):
        raise ValueError(f"{where}: expected the fields {names} of the struct, but got {list(arg.fields)}")
    value, pointers = np.zeros((), layout), []
    for name, given in arg.fields.items():
        kind, offset = _fields(layout)[name][:2]
        if given is None or isinstance(given, str | At):
            if kind != np.uint64:
                raise ValueError(f"{where}, field {name}: expected uint64 for a pointer, but got {kind}")
            pointers.append((int(offset), _pointer(f"{where}, field {name}", given, by_name)))
            continue
        try:
            value[name] = given
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{where}, field {name}: expected {kind}, but got {came(given)} ({error})") from None
    return Argument("struct", bits=value.tobytes().hex(), pointers=tuple(pointers))


def _number(where: str, arg: Any) -> Argument:
    if isinstance(arg, np.void):
        _checked_layout(where, arg.dtype)
        return Argument("struct", bits=arg.tobytes().hex())
    if isinstance(arg, bool):
        arg = np.bool_(arg)
    elif isinstance(arg, int):
        if not -(2**31) <= arg < 2**31:
            raise ValueError(f"{where}: {arg} does not fit in an int; pass numpy.int64({arg})")
        arg = np.int32(arg)
    elif isinstance(arg, float) and not isinstance(arg, np.float64):
        arg = np.float32(arg)
    kind = _SCALARS.get(type(arg))
    if kind is None:
        raise ValueError(f"{where}: expected a name, a number or one of {list(_SCALARS.values())}, but got {came(arg)}")
    return Argument(kind, bits=arg.tobytes().hex())


def _checked_layout(where: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A structured dtype that is laid out as C lays out the struct."""
    if dtype.names is None or not all(map(_is_plain, _leaves(dtype))):
        raise ValueError(f"{where}: expected a structured dtype of numbers for a struct, but got {dtype}")
    if dtype.itemsize > MOST_BYTES:
        raise ValueError(f"{where}: expected a struct of at most {MOST_BYTES:,} bytes, but got {dtype.itemsize:,}")
    aligned = _aligned(dtype)
    if _offsets(dtype) != _offsets(aligned):
        raise ValueError(
            f"{where}: expected the layout of C, {aligned.itemsize} bytes, but got {dtype.itemsize} bytes without its "
            "padding; write numpy.dtype([...], align=True)"
        )
    return dtype


def _fields(dtype: np.dtype[Any]) -> Mapping[str, Any]:
    """Field -> its dtype and its byte."""
    return dict(dtype.fields or {})


def _leaves(dtype: np.dtype[Any]) -> Iterable[np.dtype[Any]]:
    if dtype.subdtype:
        yield from _leaves(dtype.subdtype[0])
    elif dtype.names is None:
        yield dtype
    else:
        for name in dtype.names:
            yield from _leaves(_fields(dtype)[name][0])


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return is_number(dtype) and dtype.isnative


def _aligned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same fields in the same order, with the padding of C."""
    if dtype.subdtype:
        return np.dtype((_aligned(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, _aligned(_fields(dtype)[name][0])) for name in dtype.names], align=True)


def _offsets(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """The place of every field, and the size of the whole."""
    if dtype.subdtype:
        return (dtype.itemsize, _offsets(dtype.subdtype[0]))
    fields = _fields(dtype)
    return (dtype.itemsize, *((fields[name][1], _offsets(fields[name][0])) for name in dtype.names or ()))
