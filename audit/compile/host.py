"""Builds a program for this CPU from a CUDA source: rewrites it, compiles it against `audit/simt`, links both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache as cache_in_process
from functools import lru_cache
from pathlib import Path

import msgspec

from audit.compile.cache import cached_folder, default_cache
from audit.compile.compiler import Compiler, find_compiler
from audit.compile.device_order import include_folders
from audit.compile.host_code import without_host_code
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.instrumentation import PLAIN_CHECKS, Sanitizer, find_instrumentation
from audit.compile.launch_bounds import bounds_macros
from audit.compile.machine_code import program_digests
from audit.compile.rewrite import quoted, rewrite
from audit.compile.source_words import (
    has_fast_math,
    host_contraction,
    host_folders,
    host_standard,
    is_contracted,
)
from audit.compile.sources import PORTABLE, SIMT, decoded, foreign_includes, project_sources, quoted_includes
from audit.compile.unset_constants import unset_constants
from audit.errors import CompileError, PlanError

_SECTIONS = ("-ffunction-sections", "-fdata-sections")  # so that a kernel's code can be told from another's
_PROGRAM, _IDENTITY, _OBJECT, _KERNEL = "program", "identity.json", "object.o", "kernel.o"


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


def build_host(
    root: Path,
    source: Path,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    defines: Mapping[str, str] = {},
    words: Sequence[str] = ("-fmad=false",),
    also: Sequence[str] = (),
    constants: Sequence[str] = (),
    cache: Path | None = None,
    sanitizer: Sanitizer = "",
) -> HostBuild:
    """Build `source` (a path, absolute or relative to `root`) with the kernels `entries`, or return the cached build.

    An entry is a C++ expression, `softmax` or `splits<6, 256>`; a launch refers to it by its position. `constants` are
    the variables that launches fill, `words` what a source declares for nvcc, `also` further sources of the unit.
    Host code that does not compile here is left out (`host_code.py`). Raises
    ProjectError or CompileError for the source, ToolMissing for the machine, PlanError for an unknown `arch`.

    A program for a sanitizer reports lines of the source. Run it as `audit.sanitize.host.tools` does.
    """
    entries = checked_entries(entries)
    check_arch(arch)
    folders = include_folders(words)
    files = project_sources(root, source, folders, also)
    texts = {name: decoded(content) for name, content in files.items()}
    rewritten = _rewritten(texts, folders)
    without_host = _rewritten(_device_texts(tuple(texts.items()), entries), folders)
    compiler = find_compiler()
    instrumentation = find_instrumentation(compiler, sanitizer)
    runtime_flags = (*compiler.flags, *((f"-D{instrumentation.macro}",) if instrumentation else ()))
    cache = (cache or default_cache()).resolve()
    flags = (
        *runtime_flags,
        *_SECTIONS,
        *(instrumentation.kernel if instrumentation else PLAIN_CHECKS),
        f"-DSIMT_ARCH={TARGETS[arch].model}",
        f"-D__CUDA_ARCH__={arch.removeprefix('sm_')}0",
        *host_standard(words),
        *host_contraction(words),
        *(f"-D{key}={value}" for key, value in defines.items()),
    )
    link_flags = (*runtime_flags, *(instrumentation.link if instrumentation else ()))
    parts = {
        "backend": "host",
        "arch": arch,
        "compiler": compiler.version,
        "flags": flags,
        "link_flags": link_flags,
        "entries": entries,
        "sources": {name: sha256(content) for name, content in files.items()},
        "rewritten": (rewritten, without_host),
        "program": _program((next(iter(files)), *also), entries, arch, constants),
        "folders": folders,
        "fast_math": has_fast_math(words),
        "runtime": _runtime_hashes(),
    }
    key = build_key(parts)

    def runtime_object(path: Path) -> Path:
        needed_flags = runtime_flags if _uses_sanitizers(path) else compiler.flags
        return _runtime_object(compiler, needed_flags, path, cache)

    def build(folder: Path) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(runtime_object, sorted(SIMT.glob("*.cc"))))

        def compile_texts(chosen: Mapping[str, str]) -> None:
            program = str(parts["program"])
            _compile(compiler, flags, link_flags, folders, chosen, program, objects, root.resolve(), folder)

        try:
            compile_texts(rewritten)
        except CompileError:  # most likely of host code, which needs a GPU's libraries
            if without_host == rewritten:
                raise
            compile_texts(without_host)
        content = (folder / _PROGRAM).read_bytes()
        identity = BuildIdentity(
            backend="host",
            arch=arch,
            key=key,
            source=next(iter(files)),
            sources={name: sha256(content) for name, content in files.items()},
            entries=entries,
            compiler=compiler.version,
            flags=flags,
            binary_sha256=sha256(content),
            binary_fnv=fnv1a64(content),
            machine_code=program_digests((folder / _KERNEL).read_bytes(), entries, files),
            contracted=is_contracted(words),
            fast_math=has_fast_math(words),
            unset_constants=unset_constants(texts.values()),
        )
        (folder / _KERNEL).unlink()
        (folder / _IDENTITY).write_bytes(msgspec.json.encode(identity))

    entry = cached_folder(cache, "host", key, (_PROGRAM, _IDENTITY), build)
    identity = msgspec.json.decode((entry / _IDENTITY).read_bytes(), type=BuildIdentity)
    return HostBuild(entry / _PROGRAM, identity, sanitizer)


@lru_cache(maxsize=64)  # every arm builds the same texts
def _device_texts(texts: tuple[tuple[str, str], ...], entries: tuple[str, ...]) -> dict[str, str]:
    return without_host_code(dict(texts), entries)


def _rewritten(texts: Mapping[str, str], folders: Sequence[str]) -> dict[str, str]:
    foreign, macros = foreign_includes(texts, folders), bounds_macros(texts.values())
    return {name: rewrite(text, name, foreign[name], macros) for name, text in texts.items()}


def _program(sources: Sequence[str], entries: Sequence[str], arch: str, constants: Sequence[str]) -> str:
    """The translation unit: the source, then the table of its kernels."""
    table = ",\n".join(f"  KernelOf<{entry}>::named({quoted(entry)})" for entry in entries)
    included = "".join(f"#include {quoted(source)}\n" for source in sources)
    filled = "".join(f"  variable_named({quoted(name)}, ::{name}),\n" for name in constants)
    return (
        f"#include <cuda_runtime.h>\n{included}#include <simt_kernel.h>\n"
        f'#line 1 "the list of entries"\nnamespace simt {{\nextern const Kernel kernels[] = {{\n{table}}};\n'
        f"extern const unsigned kernel_count = {len(entries)};\n"
        f'#line 1 "the list of constants"\nextern const Variable variables[] = {{\n{filled}  {{}}}};\n'
        f"extern const unsigned variable_count = {len(constants)};\n"
        f"extern const Target target = {{{quoted(arch)}, {TARGETS[arch].shared_limit}}};\n}}\n"
    )


def _compile(
    compiler: Compiler,
    flags: Sequence[str],
    link_flags: Sequence[str],
    folders: Sequence[str],
    rewritten: Mapping[str, str],
    program: str,
    objects: Sequence[Path],
    root: Path,
    folder: Path,
) -> None:
    tree = folder / "source"
    for name, text in rewritten.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    main = folder / "program.cc"
    main.write_text(program)
    includes = [f"-iquote{tree}", *host_folders(folders, tree, root), f"-I{SIMT / 'include'}", f"-I{PORTABLE}"]
    # The working directory is the project's root, so that the compiler shows lines of the original source.
    compiler.run(
        [
            *flags,
            f"-ffile-prefix-map={folder}=build",
            f"-ffile-prefix-map={root}=.",
            f"-ffile-prefix-map={SIMT.parent}=audit",
            "-fmax-errors=5" if "clang" not in compiler.version else "-ferror-limit=5",
            *includes,
            "-c",
            main,
            "-o",
            folder / _KERNEL,
        ],
        cwd=root,
        scratch=folder,
    )
    compiler.run([*link_flags, folder / _KERNEL, *objects, "-o", folder / _PROGRAM], cwd=root, scratch=folder)


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
def _runtime_hashes() -> dict[str, str]:
    """Hashes of the tool's own headers and sources, which do not change while it runs."""
    return _hashes(SIMT.rglob("*.h")) | _hashes(SIMT.glob("*.cc"))


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(SIMT).as_posix(): sha256(path.read_bytes()) for path in paths}
