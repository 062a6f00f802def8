"""The part of the safetensors format that captures use: a bounded reader and a deterministic writer.

A file is a 64-bit little-endian header length, a JSON header and a data area. The header names each tensor's dtype,
shape and byte range in the data area. The reader trusts none of it. It bounds the header before it reads it, ranges
must tile the data area without gap or overlap, and the file must end with the last range. The writer exists because the
library chooses its own order; here the same tensors give the same file.
"""

from __future__ import annotations

import math
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from audit import foreign
from audit.errors import CaptureError
from audit.foreign import ForeignError
from audit.printable import one_line

MAX_HEADER_BYTES = 4 << 20
MAX_FILE_BYTES = 64 << 30
MAX_DIMENSIONS = 8
ALIGNMENT = 64
"""The data area begins at a multiple of this many bytes, padded with spaces behind the JSON."""

ITEM_BYTES = {"U8": 1, "F16": 2}


class TensorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor in the header; `data_offsets` are its first byte and the byte after its last in the data area."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class TensorFile:
    """An open file whose header was read and fits the file exactly."""

    def __init__(self, stream: BinaryIO, where: str, entries: dict[str, TensorEntry], data_start: int) -> None:
        self._stream = stream
        self._data_start = data_start
        self.where = where
        self.entries = entries

    def read(self, key: str) -> bytes:
        """The payload of one tensor. Raises CaptureError if the file ends early."""
        begin, end = self.entries[key].data_offsets
        self._stream.seek(self._data_start + begin)
        payload = self._stream.read(end - begin)
        if len(payload) != end - begin:
            raise CaptureError(
                f"{self.where}: {key}: expected {end - begin:,} bytes, but got {len(payload):,}; "
                "the file shrank during reading: restore it or record again"
            )
        return payload


def open_inside(folder: Path, name: str, limit: int) -> BinaryIO:
    """Open a regular file directly in `folder`, with links resolved. Raises CaptureError for anything else.

    `limit` bounds its size in bytes. Opening never blocks, not even on a FIFO.
    """
    where = f"{folder.name}/{name}"
    try:
        path = (folder / name).resolve(strict=True)
        if path.parent != folder.resolve(strict=True):
            raise CaptureError(f"{where}: expected a file inside its folder, but it links elsewhere; copy it in")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError, RuntimeError) as error:
        raise CaptureError(
            f"{where}: expected a readable file, but got: {error}; restore it or record again"
        ) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        os.close(descriptor)
        raise CaptureError(
            f"{where}: expected a regular file of at most {limit:,} bytes, but got {status.st_size:,} bytes, "
            f"mode {stat.filemode(status.st_mode)}"
        )
    return os.fdopen(descriptor, "rb")


def read_header(stream: BinaryIO, where: str) -> TensorFile:
    """Parse and check the header of an open file, and read nothing else. Raises CaptureError."""
    size = os.fstat(stream.fileno()).st_size
    prefix = stream.read(8)
    if len(prefix) < 8:
        raise CaptureError(
            f"{where}: expected a header length of 8 bytes, but got {len(prefix)}; the file is truncated"
        )
    (length,) = struct.unpack("<Q", prefix)
    if not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
        raise CaptureError(
            f"{where}: header length: expected 2 to {min(MAX_HEADER_BYTES, size - 8):,}, but got {length:,}; "
            "the file is damaged or not a safetensors file"
        )
    header = stream.read(length)
    try:
        raw = foreign.decode(header, dict[str, msgspec.Raw], limit=MAX_HEADER_BYTES)
        raw.pop("__metadata__", None)
        entries = {key: msgspec.json.decode(value, type=TensorEntry) for key, value in raw.items()}
    except (ForeignError, msgspec.DecodeError) as error:
        raise CaptureError(f"{where}: header: {one_line(error)}; the file is damaged") from error
    _require_tiling(entries, size - 8 - length, where)
    return TensorFile(stream, where, entries, 8 + length)


def _require_tiling(entries: Mapping[str, TensorEntry], data_bytes: int, where: str) -> None:
    """Require that every byte of the data area belongs to exactly one tensor, and every size matches its shape."""
    at = 0
    for key, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        if entry.dtype not in ITEM_BYTES:
            raise CaptureError(f"{where}: {key}.dtype: expected one of {sorted(ITEM_BYTES)}, but got {entry.dtype!r}")
        if len(entry.shape) > MAX_DIMENSIONS or any(not 0 < extent <= data_bytes for extent in entry.shape):
            raise CaptureError(f"{where}: {key}.shape: expected extents that fit the file, but got {entry.shape}")
        begin, end = entry.data_offsets
        nbytes = math.prod(entry.shape) * ITEM_BYTES[entry.dtype]
        if (begin, end) != (at, at + nbytes):
            raise CaptureError(
                f"{where}: {key}.data_offsets: expected [{at}, {at + nbytes}], but got [{begin}, {end}]; "
                "tensors must fill the data area without gap or overlap"
            )
        at = end
    if at != data_bytes:
        raise CaptureError(
            f"{where}: expected {at:,} bytes of data, but got {data_bytes:,}; the file is truncated or has a tail"
        )


def serialise(tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> tuple[bytes, dict[str, int]]:
    """A safetensors file of name -> (dtype, shape, payload), in that order, and each tensor's data offset."""
    header: dict[str, TensorEntry] = {}
    at = 0
    for key, (dtype, shape, payload) in tensors.items():
        if math.prod(shape) * ITEM_BYTES[dtype] != len(payload):
            raise ValueError(f"{key}: expected {shape} of {dtype}, but got {len(payload)} bytes")
        header[key] = TensorEntry(dtype, shape, (at, at + len(payload)))
        at += len(payload)
    text = msgspec.json.encode(header)
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    offsets = {key: entry.data_offsets[0] for key, entry in header.items()}
    return b"".join([struct.pack("<Q", len(text)), text, *(payload for _, _, payload in tensors.values())]), offsets
