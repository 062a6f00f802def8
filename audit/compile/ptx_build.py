"""Builds a program for this CPU from PTX: clang's for a CUDA source, or what a project brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache as cache_in_process
from pathlib import Path

import msgspec

import audit.ptx
from audit.compile.cache import cached_folder, default_cache
from audit.compile.clang import Clang, compile_to_ptx, require_clang
from audit.compile.compiler import find_compiler
from audit.compile.device_order import include_folders
from audit.compile.device_sources import device_sources
from audit.compile.gpu_file import is_ptx, kernel_of
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.instrumentation import Sanitizer, find_instrumentation
from audit.compile.machine_code import program_digests
from audit.compile.program import (
    IDENTITY,
    KERNEL,
    PROGRAM,
    TARGETS,
    HostBuild,
    SourceUnit,
    Toolchain,
    check_arch,
    runtime_hashes,
)
from audit.compile.rewrite import quoted
from audit.compile.source_words import has_fast_math, is_contracted
from audit.compile.sources import SIMT, decoded, read_source
from audit.compile.unset_constants import unset_constants
from audit.errors import CompileError, ProjectError
from audit.ptx.parse import parse_module, producer_of
from audit.ptx.syntax import Module, Symbol
from audit.ptx.translate import EntryPoint, FilledVariable, kernel_table, translate, variable_table
from audit.spec import Machine

_MODULE = "module.ptx"
# What PTX defines where C++ does not, so that translated instructions never do it. Each check would cost time.
_UNCHECKED = ("-fno-sanitize=bounds,null,return,bool,enum,shift-exponent,float-cast-overflow,integer-divide-by-zero",)
_KINDS = ("pointer", "i32", "u32", "i64", "u64", "f32", "f64", "bytes")


def build_by_clang(
    root: Path,
    unit: SourceUnit,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    cache: Path | None = None,
    sanitizer: Sanitizer = "",
) -> HostBuild:
    """Build a CUDA source through PTX, or return the cached build. An entry is a C++ expression, as in `build_host`.

    Raises what `build_host` raises; ToolMissing also without clang or CUDA's headers.
    """
    entries = checked_entries(entries)
    check_arch(arch)
    clang = require_clang()
    cache = (cache or default_cache()).resolve()
    files = device_sources(root, unit.path, include_folders(unit.words), unit.also)
    ptx = _ptx(clang, root, unit, files, entries, arch, cache)

    def table(module: Module) -> ProgramTable:
        points = tuple(_entry_point(module, number, entry) for number, entry in enumerate(entries))
        return ProgramTable(points, tuple(_constant(module, *each) for each in enumerate(unit.constants)))

    record = Provenance(
        next(iter(files)),
        {name: sha256(content) for name, content in files.items()},
        f"clang: {clang.identity}, {arch}",
        is_contracted(unit.words),
        has_fast_math(unit.words),
        unset_constants(decoded(content) for content in files.values()),
    )
    return _build(root, record, entries, ptx, table, arch, cache, sanitizer)


def build_ptx(
    root: Path,
    code: Machine,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    cache: Path | None = None,
    sanitizer: Sanitizer = "",
) -> HostBuild:
    """Build a PTX file that the project brings, with the kernels `entries`, as `load_machine` names them.

    The record names the compiler that the file's first comment names. Raises CompileError for a file that is no PTX or
    that the CPU does not support, ProjectError if the file or a kernel is missing.
    """
    check_arch(arch)
    path = (root / code.path).resolve()
    if not path.is_relative_to(root.resolve()) or not path.is_file():
        raise ProjectError(f"Machine({code.path!r}): no such file in {root}; correct the variant's Machine")
    content = read_source(path, code.path)
    if not is_ptx(content):
        raise CompileError(f"{code.path}: this is compiled GPU code, which a CPU cannot run; use --device cuda")
    text = content.decode(errors="replace")

    def table(module: Module) -> ProgramTable:
        kernels = [function.name for function in module.functions.values() if function.is_entry and function.body]
        return ProgramTable(tuple(EntryPoint(entry, kernel_of(code, entry, kernels)) for entry in entries), ())

    cache = (cache or default_cache()).resolve()
    producer = producer_of(text) or "an unnamed compiler"
    record = Provenance(code.path, {code.path: sha256(content)}, f"PTX of: {producer}")
    return _build(root, record, tuple(entries), text, table, arch, cache, sanitizer)


class ProgramTable(msgspec.Struct, frozen=True):
    """The kernels of a program, and the variables that launches fill: name in launches, symbol, bytes."""

    entries: tuple[EntryPoint, ...]
    constants: tuple[FilledVariable, ...]


class Provenance(msgspec.Struct, frozen=True):
    """Where a program's PTX comes from, as its record says it."""

    source: str
    sources: dict[str, str]
    front_end: str
    contracted: bool = False
    fast_math: bool = False
    unset_constants: tuple[str, ...] = ()


def _ptx(
    clang: Clang,
    root: Path,
    unit: SourceUnit,
    files: Mapping[str, bytes],
    entries: tuple[str, ...],
    arch: str,
    cache: Path,
) -> str:
    """clang's PTX, kept in the cache: the builds for sanitizers share it."""
    parts = {
        "clang": clang.identity,
        "arch": arch,
        "unit": (unit.defines, unit.words, unit.also, unit.constants),
        "entries": entries,
        "sources": {name: sha256(content) for name, content in files.items()},
        "tool": (_tool_hashes(), runtime_hashes()),
    }

    def build(folder: Path) -> None:
        tree = (folder / "source").resolve()
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        text = compile_to_ptx(clang, tree, root.resolve(), unit, tuple(files), entries, arch)
        (folder / _MODULE).write_text(text)

    folder = cached_folder(cache, "ptx", build_key(parts), (_MODULE,), build)
    return (folder / _MODULE).read_text()


def _build(
    root: Path,
    record: Provenance,
    entries: tuple[str, ...],
    ptx: str,
    table: Callable[[Module], ProgramTable],
    arch: str,
    cache: Path,
    sanitizer: Sanitizer,
) -> HostBuild:
    compiler = find_compiler()
    tools = Toolchain(compiler, find_instrumentation(compiler, sanitizer))
    flags = (*tools.kernel_flags, *_UNCHECKED, *(() if sanitizer else ("-O1",)), f"-DSIMT_ARCH={TARGETS[arch].model}")
    parts = {
        "backend": "host",
        "front_end": record.front_end,
        "arch": arch,
        "compiler": compiler.version,
        "flags": flags,
        "link_flags": tools.link_flags,
        "entries": entries,
        "sources": record.sources,
        "ptx": sha256(ptx.encode()),
        "tool": _tool_hashes(),
        "runtime": runtime_hashes(),
    }
    key = build_key(parts)

    def build(folder: Path) -> None:
        module = parse_module(ptx)
        made = table(module)
        objects = tools.runtime_objects(cache)
        main = folder / "program.cc"
        main.write_text(
            f"{translate(module, made.entries, made.constants)}namespace simt {{\n{kernel_table(module, made.entries)}"
            f"extern const unsigned kernel_count = {len(made.entries)};\n{variable_table(made.constants)}"
            f"extern const unsigned variable_count = {len(made.constants)};\n"
            f"extern const Target target = {{{quoted(arch)}, {TARGETS[arch].shared_limit}, true}};\n}}\n"
        )
        prefixes = (f"-ffile-prefix-map={folder}=build", f"-ffile-prefix-map={SIMT.parent}=audit")
        compiler.run(
            [*flags, *prefixes, "-w", f"-I{SIMT}", "-c", main, "-o", folder / KERNEL],
            cwd=root.resolve(),
            scratch=folder,
        )
        tools.link(folder, objects, root.resolve())
        content = (folder / PROGRAM).read_bytes()
        identity = BuildIdentity(
            backend="host",
            arch=arch,
            key=key,
            source=record.source,
            sources=record.sources,
            entries=entries,
            compiler=f"{record.front_end}; {compiler.version}",
            flags=flags,
            binary_sha256=sha256(content),
            binary_fnv=fnv1a64(content),
            machine_code=program_digests((folder / KERNEL).read_bytes(), entries, record.sources),
            contracted=record.contracted,
            fast_math=record.fast_math,
            unset_constants=record.unset_constants,
        )
        (folder / KERNEL).unlink()
        (folder / IDENTITY).write_bytes(msgspec.json.encode(identity))

    entry = cached_folder(cache, "host", key, (PROGRAM, IDENTITY), build)
    identity = msgspec.json.decode((entry / IDENTITY).read_bytes(), type=BuildIdentity)
    return HostBuild(entry / PROGRAM, identity, sanitizer)


def _entry_point(module: Module, number: int, entry: str) -> EntryPoint:
    """What clang's table says of an entry: its symbol, and three words for each parameter."""
    table = module.variables.get(f"kernel_audit_entry_{number}")
    symbols = [one for one in table.initial if isinstance(one, Symbol)] if table else []
    if len(symbols) != 2:
        raise CompileError(f"entry {entry}: clang's PTX does not say what it is called")
    kernel, described = symbols
    data = module.variables[described.name]
    raw = bytes(int(value) for value in data.initial if isinstance(value, int)).ljust(data.bytes, b"\0")
    words = [int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 4)]
    rows = [(_KINDS[words[at]], words[at + 1], words[at + 2]) for at in range(0, len(words) - 3, 3)]
    return EntryPoint(entry, kernel.name, tuple(rows))


def _constant(module: Module, number: int, name: str) -> FilledVariable:
    """What clang's table says of a variable: its symbol; the variable itself says its size."""
    table = module.variables.get(f"kernel_audit_constant_{number}")
    symbols = [one for one in table.initial if isinstance(one, Symbol)] if table else []
    if not symbols or symbols[0].name not in module.variables:
        raise CompileError(f"constant {name}: clang's PTX does not say what it is called")
    return FilledVariable(name, symbols[0].name)


@cache_in_process
def _tool_hashes() -> dict[str, str]:
    """Hashes of the translator's own files."""
    folder = Path(audit.ptx.__file__).parent
    return {path.name: sha256(path.read_bytes()) for path in sorted(folder.glob("*.py"))}
