"""The identity of a build: its inputs, and the hashes by which its product is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_FNV_BASIS, _FNV_PRIME, _WORD = 14695981039346656037, 1099511628211, 2**64 - 1


class KernelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel's resources as the compiler reports them, not what a launch uses. None: not reported."""

    entry: str
    symbol: str  # its name inside the cubin
    registers: int | None = None  # of a thread
    static_shared: int | None = None  # bytes of a block, without the dynamic shared memory of a launch
    stack: int | None = None  # bytes of a thread, spilled registers included
    local: int | None = None  # bytes of a thread, without the stack
    spill_stores: int | None = None  # bytes of a thread
    spill_loads: int | None = None


class CodeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a cubin. None: no disassembler could read it."""

    kernels: tuple[KernelRecord, ...]
    disassembler: str | None = None
    disassembly_sha256: str | None = None  # of its text, which depends on the disassembler's version
    tensor_core: tuple[str, ...] | None = None  # the tensor-core instructions, sorted


class BuildIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one build."""

    backend: str  # host or cuda
    arch: str  # sm_90: of the tensor-core model (host) or the code (cuda)
    key: str  # sha256 over all inputs of the build
    source: str  # relative to the project's root
    sources: dict[str, str]  # path relative to the project's root -> sha256, for every project file used
    entries: tuple[str, ...]  # kernels, in the order of their indices
    compiler: str
    flags: tuple[str, ...]
    binary_sha256: str
    binary_fnv: str  # FNV-1a-64 over the binary's bytes, 16 hexadecimal digits
    code: CodeRecord | None = None  # of a cubin
    stubs: tuple[str, ...] = ()  # headers that nobody has here, for which empty files stood in
    host_code: bool = True  # False: a compiler for the device had to leave the host code out
    contracted: bool | None = None  # whether a multiplication and an addition may be fused; None: older records
    fast_math: bool = False  # whether --use_fast_math was declared
    unset_constants: tuple[str, ...] = ()  # `__constant__` variables of the source without an initialiser
    machine_code: dict[str, str] = {}  # entry -> sha256 of the instructions and constants that it runs; may lack some


def sha256(content: bytes) -> str:
    """The hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The hash of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fnv1a64(content: bytes) -> str:
    """FNV-1a-64 as 16 hexadecimal digits. A host program computes the same over /proc/self/exe."""
    value = _FNV_BASIS
    for byte in content:
        value = (value ^ byte) * _FNV_PRIME & _WORD
    return f"{value:016x}"


def build_key(parts: Mapping[str, object]) -> str:
    """The sha256 over all inputs of a build; `parts` holds strings, sequences and mappings."""
    return sha256(msgspec.json.encode(dict(parts), order="sorted"))


def checked_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """The entries as a tuple. Raises ValueError if there are none, or if one is not a single line."""
    for entry in entries:
        if not entry.strip() or not entry.isprintable():
            raise ValueError(
                f"expected an entry to be a C++ expression on one line, such as softmax or split<6, 256>, "
                f"but got {entry!r}"
            )
    if not entries:
        raise ValueError("expected at least one entry to build, but got none")
    return tuple(entries)
