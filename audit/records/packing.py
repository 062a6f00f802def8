"""Compressed files of a record: `evidence.json` as `evidence.json.gz`, which SHA256SUMS then lists."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path

from audit import foreign
from audit.errors import EvidenceError
from audit.foreign import ForeignError

SIZE_LIMIT = 256 * 2**20
"""The most bytes of a file, packed or unpacked; larger files are not read."""
_PACKED = ".gz"
_GZIP = 31  # for zlib: a gzip header, and the largest window


def unpacked_name(name: str) -> str:
    """The name of a file after unpacking."""
    return name.removesuffix(_PACKED)


def lies(home: Path, name: str) -> bool:
    """Whether a folder has a file of that name, compressed or not."""
    return any(os.path.lexists(home / lying) for lying in (name, name + _PACKED))


def read_unpacked(home: Path, name: str) -> bytes:
    """The unverified content of a file in a folder. Raises EvidenceError if it cannot be read."""
    lying = name if os.path.lexists(home / name) else name + _PACKED
    try:
        return unpacked(lying, foreign.read(home / lying, SIZE_LIMIT), home)
    except ForeignError as error:
        raise EvidenceError(f"{home / lying}: {error}") from None


def packed(files: Mapping[str, bytes], names: Collection[str]) -> dict[str, bytes]:
    """The files, with those in `names` compressed; deterministic for one version of zlib."""
    return {
        (name + _PACKED if name in names else name): gzip.compress(content, mtime=0) if name in names else content
        for name, content in files.items()
    }


def unpacked(name: str, content: bytes, home: Path) -> bytes:
    """The content of a file. Raises EvidenceError if it cannot be unpacked or is too large."""
    if name == unpacked_name(name):
        return content
    stream = zlib.decompressobj(wbits=_GZIP)
    try:
        plain_content = stream.decompress(content, SIZE_LIMIT)
    except zlib.error as error:
        raise EvidenceError(f"{home / name}: cannot be unpacked ({error})") from None
    if not stream.eof or stream.unused_data:
        raise EvidenceError(f"{home / name}: expected one whole gzip file of at most {SIZE_LIMIT:,} bytes unpacked")
    return plain_content
