"""The layout of a case's buffers in files, the guards around them, and their contents before a launch.

This module alone owns poison, guards and snapshots. Each buffer has its own file, which the executing process maps:
everything that a kernel wrote, guards included, survives a crash. Layout of a file:

    guard (4,096 bytes, then the buffer's own base offset) | data | guard (4,096 bytes, then up to the page's end)

The file fills whole pages, so that nothing of its mapping lies outside the guards. Poison and guards are of a kind:

    nan   quiet NaN; an odd positive integer. A value made from it is not finite
    high  large, positive and finite. It wins where a comparison or a maximum passes over NaN
    low   large, negative and finite; an odd negative integer. It wins in a minimum

Results must not depend on the kind. Each word is new for each buffer, variant and step, and no two kinds share one: an
element that still holds its poison was not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from audit import elements, formats, sparse
from audit.conversions import converted
from audit.errors import ProjectError
from audit.spec import DTYPES, Array, Buffer, Case, Inputs, Role

GUARD_BYTES = 4096
PAGE_BYTES = 4096  # what the host maps at a time
Policy = Literal["guarded", "exact"]
PoisonKind = Literal["nan", "high", "low"]
INITIALISED: frozenset[Role] = frozenset({"in", "inout", "constant"})
"""The roles of buffers that a kernel finds filled, from the inputs."""

_MAPPED_FROM = 1 << 24
"""Files of at least this many bytes are mapped, not read: otherwise each variant would hold the largest inputs."""

_GUARD_LOW = (0x7F7F, 0x7FFF, 0xFF7F, 0xFFFF)
_GUARD_HIGH = (0x7FFF, 0xFFFF)  # the upper half of an f32 must make it a NaN

_FLOAT_POISON: Mapping[str, tuple[int, int, int, int]] = {
    "f16": (0x1FF, 0x7E00, 0x7B00, 0x7BFF),
    "bf16": (0x3F, 0x7FC0, 0x7149, 0x7F61),
    "f32": (0x3FFFFF, 0x7FC00000, 0x7149F2CA, 0x7F61B1E6),
    "f64": (0x7FFFFFFFFFFFF, 0x7FF8000000000000, 0x7E37E43C8800759C, 0x7ED754E31CD072DA),
}
"""The greatest fraction beside the quiet bit, the quiet NaN without a fraction, and the range of large values:
57,344 to 65,504; for bf16 and f32 1e30 to 3e38; 1e300 to 1e303."""
_OF_ML_DTYPES = tuple(dtype for dtype in DTYPES.values() if dtype.isbuiltin != 1)
_BYTE_POISON: Mapping[str, tuple[int, int]] = {"e4m3": (formats.E4M3_NAN, 0x7B), "e5m2": (0x7D, 0x78)}
"""A NaN, which for e5m2 is not the one that hardware makes; the least of four large numbers: e4m3 352, 384, 416 and
448, e5m2 32,768, 40,960, 49,152 and 57,344."""


class Slot(msgspec.Struct, frozen=True):
    """One buffer in its file: `size` bytes of data at `offset`, with a guard before them and one behind."""

    name: str
    dtype: str
    role: Role
    file: str
    offset: int
    size: int
    file_size: int
    guard: str  # eight bytes, hexadecimal
    behind: str  # bytes that replace the first of the guard behind the data, hexadecimal


class Snapshot(msgspec.Struct, frozen=True):
    """The contents of a buffer's file after a step: the data, and the guard bytes that changed."""

    data: Array  # u1, `size` bytes
    broken_guards: tuple[int, ...]  # byte offsets relative to the start of the data (negative: before it)


def lay_out(
    buffers: Sequence[Buffer],
    case: Case,
    salt: str,
    policy: Policy = "guarded",
    shift: int = 0,
    kind: PoisonKind = "nan",
) -> tuple[Slot, ...]:
    """Give each buffer its own file, offset and guard.

    `salt` differs between the arms of one case. `shift` moves every buffer by that many bytes, a multiple of 256, to
    which CUDA aligns its allocations. `kind` is the kind of the guards.
    """
    room = GUARD_BYTES if policy == "guarded" else 0
    names = [buffer.name for buffer in buffers]
    if len(set(names)) != len(names):
        raise ProjectError(f"operator {case.operator}: expected distinct buffer names, but got {names}")
    slots = []
    for buffer in buffers:
        size = buffer.nbytes(case)
        offset = room + shift + buffer.offset
        end = offset + size + room
        slots.append(
            Slot(
                name=buffer.name,
                dtype=buffer.dtype,
                role=buffer.role,
                file=f"{buffer.name}.bin",
                offset=offset,
                size=size,
                file_size=-(-end // PAGE_BYTES) * PAGE_BYTES if policy == "guarded" else end,
                guard=_guard_word(f"{salt}/{buffer.name}", buffer.dtype, kind).hex(),
                behind=(buffer.behind if policy == "guarded" else b"").hex(),
            )
        )
    return tuple(slots)


def poison(slot: Slot, salt: str, step: int, kind: PoisonKind = "nan") -> str:
    """The eight bytes (hexadecimal) that fill an output or workspace before a step."""
    return _word(f"{salt}/{slot.name}", slot.dtype, step, kind).hex()


def poison_array(slot: Slot, word: str) -> Array:
    """The poisoned data of a whole buffer, u1."""
    eight = np.frombuffer(bytes.fromhex(word), np.uint64)
    return np.full(-(-slot.size // 8), eight[0]).view(np.uint8)[: slot.size]


def create(folder: Path, slots: Sequence[Slot], inputs: Inputs, case: Case, buffers: Sequence[Buffer]) -> None:
    """Write the buffers' files: guards, the data of the inputs, and zeros elsewhere (each step poisons those).

    A sparse input gets a sparse file. Raises ProjectError for an input that does not fit its buffer.
    """
    for slot, buffer in zip(slots, buffers, strict=True):
        with (folder / slot.file).open("wb") as file:
            file.write(_guard_bytes(slot, 0, slot.offset))
            if slot.role in INITIALISED:
                for at, block in sparse.blocks(input_bytes(buffer, case, inputs)):
                    file.seek(slot.offset + at)
                    file.write(block.data)
            file.seek(slot.offset + slot.size)
            file.write(_guard_behind(slot))
            file.truncate(slot.file_size)


def input_array(buffer: Buffer, case: Case, inputs: Inputs) -> Array:
    """One input as its buffer holds it, C-contiguous: numbers or codes, one an element; the array itself if it needs no
    conversion.

    Raises ProjectError if the array is missing or does not fit.
    """
    if buffer.name not in inputs:
        raise ProjectError(
            f"operator {case.operator}: expected inputs() to return an array for the buffer {buffer.name!r}, "
            f"but got {sorted(inputs)}"
        )
    array = converted(buffer, case, np.asanyarray(inputs[buffer.name])).array
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def input_bytes(buffer: Buffer, case: Case, inputs: Inputs) -> Array:
    """An array with the bytes of one input in its buffer: `input_array` itself, unless elements share bytes."""
    array = input_array(buffer, case, inputs)
    return elements.bytes_in(array, buffer.dtype) if buffer.packed else array


def encode_input(buffer: Buffer, case: Case, inputs: Inputs) -> memoryview:
    """The bytes of `input_bytes`, without a copy. A sparse array includes its holes."""
    return input_bytes(buffer, case, inputs).reshape(-1).view(np.uint8).data


def read_slot(path: Path, slot: Slot) -> Snapshot:
    """Read a buffer's file, or a copy of it, and compare its guards with the ones that `create` wrote.

    The data of a large file are mapped read-only and stay valid after the file is unlinked.
    """
    size = path.stat().st_size
    if size != slot.file_size:
        raise ValueError(f"{path}: expected {slot.file_size} bytes, but got {size}")
    end = slot.offset + slot.size
    with path.open("rb") as file:
        before = _differing(file.read(slot.offset), _guard_bytes(slot, 0, slot.offset))
        data: Array
        if size < _MAPPED_FROM:
            data = np.fromfile(file, np.uint8, slot.size)
        else:
            data = sparse.mapped(path, slot.offset, slot.size)
        file.seek(end)
        behind = _differing(file.read(), _guard_behind(slot))
    broken = [at - slot.offset for at in before] + [at + slot.size for at in behind]
    return Snapshot(data, tuple(broken[:64]))


def typed(snapshot: Snapshot, buffer: Buffer, case: Case) -> Array:
    """The data as an array of the buffer's dtype and dimensions."""
    return elements.numbers_of(codes(snapshot, buffer, case), buffer.dtype)


def codes(snapshot: Snapshot, buffer: Buffer, case: Case) -> Array:
    """The data as unsigned integers, one an element, in the buffer's dimensions."""
    return elements.codes_of(snapshot.data, buffer.dtype).reshape(buffer.shape(case))


def input_digest(inputs: Mapping[str, Array | np.generic]) -> str:
    """sha256 over names, dtypes, shapes and bytes of all inputs. A sparse array contributes the position and bytes of
    each block that is not all zeros. Numbers of `ml_dtypes` count as their codes."""
    digest = hashlib.sha256()
    for name in sorted(inputs):
        array = np.asanyarray(inputs[name])
        kind = np.dtype(f"u{array.dtype.itemsize}") if array.dtype in _OF_ML_DTYPES else array.dtype
        digest.update(f"{name}:{kind.str}:{array.shape};".encode())
        for at, block in sparse.blocks(array if array.flags.c_contiguous else np.ascontiguousarray(array)):
            if isinstance(array, sparse.SparseArray):
                digest.update(f"@{at};".encode())
            digest.update(block.data)
    return digest.hexdigest()


def _differing(actual: bytes, expected: bytes) -> list[int]:
    return np.flatnonzero(np.frombuffer(actual, np.uint8) != np.frombuffer(expected, np.uint8)).tolist()


def _word(salt: str, dtype: str, step: int, kind: PoisonKind) -> bytes:
    """Eight bytes of a kind for elements of a type, each element drawn for itself."""
    drawn = np.frombuffer(hashlib.sha256(f"{salt}/{step}".encode()).digest()[:8], np.uint64)
    if dtype in _BYTE_POISON:
        return bytes(_byte_word(drawn.view(np.uint8), _BYTE_POISON[dtype], kind))
    if dtype not in _FLOAT_POISON:
        return bytes(_integer_word(drawn.view(f"u{DTYPES[dtype].itemsize}"), kind))
    fraction, quiet, low, high = _FLOAT_POISON[dtype]
    words = drawn.view(f"<u{DTYPES[dtype].itemsize}")
    sign = words.dtype.type(1 << 8 * words.itemsize - 1)
    if kind == "nan":  # a fraction of 0 or of all ones would be what hardware makes
        words = words & sign | quiet | 1 + words % (fraction - 1)
    else:
        words = low + words % (high - low) | (sign if kind == "low" else 0)
    return bytes(words.astype(sign.dtype))


def _byte_word(drawn: Array, poison: tuple[int, int], kind: PoisonKind) -> Array:
    """A NaN of either sign, or one of four large numbers."""
    nan, low = map(np.uint8, poison)
    if kind == "nan":
        return drawn & np.uint8(0x80) | nan
    return low + drawn % np.uint8(4) | np.uint8(0x80 if kind == "low" else 0)


def _integer_word(drawn: Array, kind: PoisonKind) -> Array:
    """nan: odd, the top bit clear; low: odd, the top bit set; high: even, the top bit set, but 0 in the first element.

    So each question that a kernel asks of an element (is it set, negative, odd, large) gets two answers.
    """
    bits = 8 * drawn.itemsize
    top, second, odd = (drawn.dtype.type(1 << bit) for bit in (bits - 1, bits - 2, 0))
    if kind == "nan":
        return np.asarray((drawn | second | odd) & ~top)
    if kind == "low":
        return np.asarray(drawn | top | odd)
    even = np.asarray((drawn | top) & ~odd)
    even[0] = 0
    return even


def _guard_word(salt: str, dtype: str = "u8", kind: PoisonKind = "nan") -> bytes:
    """NaN read as f16, f32 or E4M3 and absurd read as an index; of another kind, or for bf16, it is a word of the
    buffer's type."""
    if kind != "nan" or dtype == "bf16":
        return _word(salt, dtype, -1, kind)
    draw = hashlib.sha256(salt.encode()).digest()
    signs = 1 if DTYPES[dtype].itemsize >= 4 and dtype[0] in "iu" else 2  # integers: positive, as poison of this kind
    halves = (
        _GUARD_LOW[draw[0] % 4],
        _GUARD_HIGH[draw[1] % signs],
        _GUARD_LOW[draw[2] % 4],
        _GUARD_HIGH[draw[3] % signs],
    )
    return np.array(halves, "<u2").tobytes()


def _guard_bytes(slot: Slot, start: int, stop: int) -> bytes:
    """The guard bytes from `start` to `stop`, both offsets in the file. The word repeats from the file's start."""
    word, phase = bytes.fromhex(slot.guard), start % 8
    return (word * ((phase + stop - start) // 8 + 1))[phase : phase + stop - start]


def _guard_behind(slot: Slot) -> bytes:
    end = slot.offset + slot.size
    behind = bytes.fromhex(slot.behind)
    size = slot.file_size - end
    return (behind + _guard_bytes(slot, end, slot.file_size)[len(behind) :])[:size]
