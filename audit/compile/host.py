"""Builds a program for this CPU from a CUDA source.

Two front ends read the source. g++ compiles it, rewritten, against the headers of `audit/simt`. clang, where it is
installed, compiles it with NVIDIA's headers to PTX, whose instructions `audit.ptx` translates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from audit.compile.cache import cached_folder, default_cache
from audit.compile.clang import find_clang
from audit.compile.compiler import Compiler, find_compiler
from audit.compile.device_order import include_folders
from audit.compile.host_code import without_host_code
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.instrumentation import Sanitizer, find_instrumentation
from audit.compile.launch_bounds import bounds_macros
from audit.compile.machine_code import program_digests
from audit.compile.program import (
    IDENTITY,
    KERNEL,
    PROGRAM,
    TARGETS,
    HostBuild,
    SourceUnit,
    Target,
    Toolchain,
    check_arch,
    runtime_hashes,
)
from audit.compile.ptx_build import build_by_clang
from audit.compile.rewrite import quoted, rewrite
from audit.compile.source_words import (
    has_fast_math,
    host_contraction,
    host_folders,
    host_standard,
    is_contracted,
)
from audit.compile.sources import PORTABLE, SIMT, decoded, foreign_includes, project_sources
from audit.compile.unset_constants import unset_constants
from audit.errors import CompileError, PlanError

FRONT_END = "KERNEL_AUDIT_CPU_FRONT_END"
"""The variable that chooses what reads CUDA sources for the CPU: gcc or clang."""

__all__ = ["FRONT_END", "TARGETS", "HostBuild", "Target", "build_host", "check_arch"]


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
    Host code that does not compile here is left out (`host_code.py`). $KERNEL_AUDIT_CPU_FRONT_END chooses the front
    end, `gcc` or `clang`; without it clang reads what g++ cannot. Raises ProjectError or CompileError for the source,
    ToolMissing for the machine, PlanError for an unknown `arch` or front end.

    A program for a sanitizer reports lines of the source. Run it as `audit.sanitize.host.tools` does.
    """
    unit = SourceUnit(source, dict(defines), tuple(words), tuple(also), tuple(constants))
    chosen = _chosen_front_end()
    if chosen == "clang":
        return build_by_clang(root, unit, entries, arch=arch, cache=cache, sanitizer=sanitizer)
    try:
        return _build_by_gcc(root, unit, entries, arch, cache, sanitizer)
    except CompileError as error:
        if chosen == "gcc" or find_clang() is None:
            raise
        try:
            return build_by_clang(root, unit, entries, arch=arch, cache=cache, sanitizer=sanitizer)
        except CompileError as refusal:
            through_ptx = f"\n(through PTX: {refusal})" if "not supported on the CPU" in str(refusal) else ""
            raise CompileError(f"{error}{through_ptx}") from None


_refused: dict[str, str] = {}
"""Key of a build that g++ refuses -> its message: every arm of every case asks again."""


def _chosen_front_end() -> str:
    chosen = os.environ.get(FRONT_END, "").strip()
    if chosen not in ("", "gcc", "clang"):
        raise PlanError(
            f"{FRONT_END}={chosen}: expected gcc or clang; leave it out for g++, with clang where g++ fails"
        )
    return chosen


def _build_by_gcc(
    root: Path, unit: SourceUnit, entries: Sequence[str], arch: str, cache: Path | None, sanitizer: Sanitizer
) -> HostBuild:
    entries = checked_entries(entries)
    check_arch(arch)
    words, also, constants = unit.words, unit.also, unit.constants
    folders = include_folders(words)
    files = project_sources(root, unit.path, folders, also)
    texts = {name: decoded(content) for name, content in files.items()}
    rewritten = _rewritten(texts, folders)
    without_host = _rewritten(_device_texts(tuple(texts.items()), entries), folders)
    compiler = find_compiler()
    tools = Toolchain(compiler, find_instrumentation(compiler, sanitizer))
    cache = (cache or default_cache()).resolve()
    flags = (
        *tools.kernel_flags,
        f"-DSIMT_ARCH={TARGETS[arch].model}",
        f"-D__CUDA_ARCH__={arch.removeprefix('sm_')}0",
        *host_standard(words),
        *host_contraction(words),
        *(f"-D{key}={value}" for key, value in unit.defines.items()),
    )
    parts = {
        "backend": "host",
        "arch": arch,
        "compiler": compiler.version,
        "flags": flags,
        "link_flags": tools.link_flags,
        "entries": entries,
        "sources": {name: sha256(content) for name, content in files.items()},
        "rewritten": (rewritten, without_host),
        "program": _program((next(iter(files)), *also), entries, arch, constants),
        "folders": folders,
        "fast_math": has_fast_math(words),
        "runtime": runtime_hashes(),
    }
    key = build_key(parts)

    def build(folder: Path) -> None:
        objects = tools.runtime_objects(cache)

        def compile_texts(chosen: Mapping[str, str]) -> None:
            program = str(parts["program"])
            _compile(compiler, flags, folders, chosen, program, root.resolve(), folder)
            tools.link(folder, objects, root.resolve())

        try:
            compile_texts(rewritten)
        except CompileError:  # most likely of host code, which needs a GPU's libraries
            if without_host == rewritten:
                raise
            compile_texts(without_host)
        content = (folder / PROGRAM).read_bytes()
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
            machine_code=program_digests((folder / KERNEL).read_bytes(), entries, files),
            contracted=is_contracted(words),
            fast_math=has_fast_math(words),
            unset_constants=unset_constants(texts.values()),
        )
        (folder / KERNEL).unlink()
        (folder / IDENTITY).write_bytes(msgspec.json.encode(identity))

    if key in _refused:
        raise CompileError(_refused[key])
    try:
        entry = cached_folder(cache, "host", key, (PROGRAM, IDENTITY), build)
    except CompileError as error:
        _refused[key] = str(error)
        raise
    identity = msgspec.json.decode((entry / IDENTITY).read_bytes(), type=BuildIdentity)
    return HostBuild(entry / PROGRAM, identity, sanitizer)


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
    folders: Sequence[str],
    rewritten: Mapping[str, str],
    program: str,
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
            folder / KERNEL,
        ],
        cwd=root,
        scratch=folder,
    )
