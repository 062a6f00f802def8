"""What every program for this CPU is made of: its target, the runtime's objects, and the build's identity."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache as cache_in_process
from pathlib import Path

import msgspec

from audit.compile.cache import cached_folder
from audit.compile.compiler import Compiler
from audit.compile.identity import BuildIdentity, build_key, sha256
from audit.compile.instrumentation import PLAIN_CHECKS, Instrumentation, Sanitizer
from audit.compile.sources import SIMT, quoted_includes
from audit.errors import PlanError

PROGRAM, IDENTITY, KERNEL = "program", "identity.json", "kernel.o"
_OBJECT = "object.o"
_SECTIONS = ("-ffunction-sections", "-fdata-sections")  # so that a kernel's code can be told from another's


class Target(msgspec.Struct, frozen=True):
    """An architecture: its tensor-core model, and the most shared memory that a block can have, in bytes."""

    model: str
    shared_limit: int
    standing: str = "published model, not measured"


# The models are those of audit/simt/tensor_core.md; limits: the CUDA programming guide's table of compute capabilities.
TARGETS = {
    "sm_70": Target("sm_70", 96 * 1024),
    "sm_75": Target("sm_80", 64 * 1024),
    "sm_80": Target("sm_80", 163 * 1024),
    "sm_86": Target("sm_80", 99 * 1024),
    "sm_89": Target("sm_80", 99 * 1024),
    "sm_90": Target("sm_90", 227 * 1024, "measured on an H200, 2026-11: 0 of 4,194,304 results differ"),
}


class HostBuild(msgspec.Struct, frozen=True):
    """A program that executes a bundle's script, plain or instrumented for one sanitizer."""

    executable: Path
    identity: BuildIdentity
    sanitizer: Sanitizer = ""


def check_arch(arch: str) -> Target:
    """The target of an architecture. Raises PlanError if there is no model for it."""
    if arch not in TARGETS:
        raise PlanError(
            f"--arch: expected one of {', '.join(TARGETS)}, which have a tensor-core model, but got {arch!r}"
        )
    return TARGETS[arch]


class SourceUnit(msgspec.Struct, frozen=True):
    """A translation unit as a variant declares it: `audit.spec.Source` has the meaning of each field."""

    path: Path
    defines: dict[str, str] = {}
    words: tuple[str, ...] = ("-fmad=false",)
    also: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()  # variables that launches fill


class Toolchain(msgspec.Struct, frozen=True):
    """The C++ compiler, and how a sanitizer wants programs compiled and linked."""

    compiler: Compiler
    instrumentation: Instrumentation | None

    @property
    def runtime_flags(self) -> tuple[str, ...]:
        """The flags of the parts of the runtime that know of sanitizers."""
        macro = (f"-D{self.instrumentation.macro}",) if self.instrumentation else ()
        return (*self.compiler.flags, *macro)

    @property
    def kernel_flags(self) -> tuple[str, ...]:
        """The flags of the kernels."""
        checks = self.instrumentation.kernel if self.instrumentation else PLAIN_CHECKS
        return (*self.runtime_flags, *_SECTIONS, *checks)

    @property
    def link_flags(self) -> tuple[str, ...]:
        """The flags of the program."""
        return (*self.runtime_flags, *(self.instrumentation.link if self.instrumentation else ()))

    def runtime_objects(self, cache: Path) -> list[Path]:
        """The objects of audit/simt, compiled where the cache lacks them."""

        def compiled(path: Path) -> Path:
            flags = self.runtime_flags if _uses_sanitizers(path) else self.compiler.flags
            return _runtime_object(self.compiler, flags, path, cache)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(compiled, sorted(SIMT.glob("*.cc"))))

    def link(self, folder: Path, objects: Sequence[Path], cwd: Path) -> None:
        """The program of a folder, from its kernels and the runtime's objects."""
        self.compiler.run(
            [*self.link_flags, folder / KERNEL, *objects, "-o", folder / PROGRAM], cwd=cwd, scratch=folder
        )


def _runtime_object(compiler: Compiler, flags: Sequence[str], path: Path, cache: Path) -> Path:
    parts = {
        "compiler": compiler.version,
        "flags": flags,
        "source": _hashes([path]),
        "headers": _hashes(SIMT.rglob("*.h")),
    }

    def build(folder: Path) -> None:
        prefix = f"-ffile-prefix-map={SIMT.parent}=audit"
        compiler.run([*flags, prefix, "-c", path, "-o", folder / _OBJECT], cwd=SIMT.parent, scratch=folder)

    return cached_folder(cache, "runtime", build_key(parts), (_OBJECT,), build) / _OBJECT


@cache_in_process
def _uses_sanitizers(path: Path) -> bool:
    """Whether a file of the runtime includes sanitizers.h, even indirectly. The others are equal in every build."""
    included = (path.parent / name for _, name in quoted_includes(path.read_text()))
    return path.name == "sanitizers.h" or any(_uses_sanitizers(file.resolve()) for file in included)


@cache_in_process
def runtime_hashes() -> dict[str, str]:
    """Hashes of the tool's own headers and sources, which do not change while it runs."""
    return _hashes(SIMT.rglob("*.h")) | _hashes(SIMT.glob("*.cc"))


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(SIMT).as_posix(): sha256(path.read_bytes()) for path in paths}
