"""What a build was made from, and how its product is recognised again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_FNV_BASIS, _FNV_PRIME, _WORD = 14695981039346656037, 1099511628211, 2**64 - 1


class KernelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the compiler says that one kernel takes: not what a launch uses of the device. None: it did not say."""

    entry: str
    symbol: str  # its name inside the cubin
    registers: int | None = None  # of a thread
    static_shared: int | None = None  # bytes of a block; what a launch asks for comes on top
    stack: int | None = None  # bytes of a thread, spilled registers included
    local: int | None = None  # bytes of a thread, beside the stack
    spill_stores: int | None = None  # bytes of a thread
    spill_loads: int | None = None


class CodeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is inside a cubin. None: there was no disassembler that reads it."""

    kernels: tuple[KernelRecord, ...]
    disassembler: str | None = None
    disassembly_sha256: str | None = None  # of its text, which belongs to the disassembler's version
    tensor_core: tuple[str, ...] | None = None  # the tensor-core instructions, sorted


class BuildIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one build, kept in evidence."""

    backend: str  # host or cuda
    arch: str  # sm_90: of the tensor-core model (host) or the code (cuda)
    key: str  # sha256 over everything that went in
    source: str  # relative to the project's root
    sources: dict[str, str]  # path relative to the project's root -> sha256, every project file that went in
    entries: tuple[str, ...]  # kernels, in the order of their indices
    compiler: str
    flags: tuple[str, ...]
    binary_sha256: str
    binary_fnv: str  # FNV-1a-64 over the binary's bytes, 16 hexadecimal digits
    code: CodeRecord | None = None  # of a cubin


def sha256(content: bytes) -> str:
    """In hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """In hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fnv1a64(content: bytes) -> str:
    """FNV-1a-64 as 16 hexadecimal digits: what a host program computes over /proc/self/exe."""
    value = _FNV_BASIS
    for byte in content:
        value = (value ^ byte) * _FNV_PRIME & _WORD
    return f"{value:016x}"


def build_key(parts: Mapping[str, object]) -> str:
    """The sha256 over everything that goes into a build; `parts` holds strings, sequences and mappings."""
    return sha256(msgspec.json.encode(dict(parts), order="sorted"))


def checked_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """Raises ValueError for no entry at all, or for one that is not a single line."""
    for entry in entries:
        if not entry.strip() or not entry.isprintable():
            raise ValueError(
                f"entry {entry!r}: a C++ expression on one line is expected, such as softmax or split<6, 256>"
            )
    if not entries:
        raise ValueError("a build needs at least one entry")
    return tuple(entries)
