"""What a compiler for a GPU gets, and what it gives: the same for nvcc and for NVRTC."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from audit.compile.rewrite import quoted

MAIN = "kernel_audit_main.cu"
"""The file that includes the source, so that its own entries can be named below it."""
PTX = "kernel_audit_main.ptx"
VERBOSE = "--ptxas-options=-v"  # ptxas then reports the resources of each kernel

_ARCH = re.compile(r"--?(?:arch|gpu-architecture)(?:=(?P<value>.+))?")
_STANDARD = re.compile(r"--?std(=.*)?")
_MANGLED = re.compile(r"_Z\w+|[^<]*\(.*")


class DeviceOrder(msgspec.Struct, frozen=True):
    """A source by its name in a folder, with the entries that its cubin must have."""

    source: str
    entries: tuple[str, ...]
    arch: str
    defines: dict[str, str] = {}
    flags: tuple[str, ...] = ()  # the declared ones, for nvcc
    line_info: bool = False
    files: tuple[str, ...] = ()  # all of the project's in the folder
    also: tuple[str, ...] = ()  # further sources of the unit

    @property
    def code_arch(self) -> str:
        """The architecture of the code: the one that the declared flags choose, such as sm_90a, else `arch`."""
        chosen = self.arch
        for at, flag in enumerate(self.flags):
            if match := _ARCH.fullmatch(flag):
                chosen = match["value"] or (self.flags[at + 1] if at + 1 < len(self.flags) else chosen)
        return chosen.replace("compute_", "sm_")

    @property
    def words(self) -> tuple[str, ...]:
        """All flags, as nvcc's command line has them."""
        declared = without_arch(self.flags)
        return (
            *(() if any(map(_STANDARD.fullmatch, declared)) else ("-std=c++17",)),
            f"-arch={self.code_arch}",
            *(("-lineinfo",) if self.line_info else ()),
            VERBOSE,
            *declared,
            *(f"-D{key}={value}" for key, value in self.defines.items()),
        )

    @property
    def included(self) -> str:
        """The lines that include every source of the unit."""
        return "".join(f"#include {quoted(name)}\n" for name in (self.source, *self.also))

    @property
    def expressions(self) -> tuple[str, ...]:
        """The entries that are C++ expressions. The others are names as the cubin has them, mangled or demangled."""
        return tuple(entry for entry in self.entries if not _MANGLED.fullmatch(entry))


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """A cubin, the names inside it of the entries that are expressions, and what made it."""

    cubin: bytes
    symbols: dict[str, str]
    compiler: str
    flags: tuple[str, ...]
    log: str  # what ptxas reports of every kernel
    stubs: tuple[str, ...] = ()  # headers that nobody has, for which empty files stood in
    host_code: bool = True  # False: the host code was left out
    read: tuple[str, ...] = ()  # files outside of the project and of the toolkit that the compiler read


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why there is no cubin: the source is wrong, or something is missing here."""

    message: str
    by_source: bool


def without_arch(flags: Sequence[str]) -> list[str]:
    """The flags without the choice of an architecture."""
    kept, skip = [], False
    for flag in flags:
        match = _ARCH.fullmatch(flag)
        if not skip and not match:
            kept.append(flag)
        skip = bool(match and match["value"] is None)
    return kept


def include_folders(flags: Sequence[str]) -> tuple[str, ...]:
    """The folders of headers that the flags name."""
    folders = []
    names = ("-I", "--include-path", "-include-path", "-isystem", "--system-include", "-system-include")
    for at, flag in enumerate(flags):
        if flag in names and at + 1 < len(flags):
            folders.append(flags[at + 1])
        elif flag.startswith("-I") and len(flag) > 2:
            folders.append(flag[2:])
        elif flag.startswith(tuple(f"{name}=" for name in names[1:])):
            folders.append(flag.partition("=")[2])
        elif flag.startswith("-isystem") and len(flag) > len("-isystem"):
            folders.append(flag.removeprefix("-isystem"))
    return tuple(folders)
