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
from audit.compile.device_sources import device_sources
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.instrumentation import Sanitizer, find_instrumentation
from audit.compile.machine_code import program_digests
from audit.compile.program import (
    IDENTITY,
    KERNEL,
    PROGRAM,
    TARGETS,
    HostBuild,
    Toolchain,
    check_arch,
    runtime_hashes,
)
from audit.compile.rewrite import quoted
from audit.compile.sources import SIMT, read_source
from audit.errors import CompileError, ProjectError
from audit.ptx.parse import parse_module
from audit.ptx.syntax import Module, Symbol
from audit.ptx.translate import EntryPoint, kernel_table, translate

_MODULE = "module.ptx"
_KINDS = ("pointer", "i32", "u32", "i64", "u64", "f32", "f64", "unsupported")


def build_by_clang(
    root: Path,
    source: Path,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    defines: Mapping[str, str] = {},
    cache: Path | None = None,
    sanitizer: Sanitizer = "",
) -> HostBuild:
    """Build a CUDA source through PTX, or return the cached build. The arguments are those of `build_host`.

    Raises what `build_host` raises; ToolMissing also without clang or CUDA's headers.
    """
    entries = checked_entries(entries)
    check_arch(arch)
    clang = require_clang()
    cache = (cache or default_cache()).resolve()
    files = device_sources(root, source, ())
    ptx = _ptx(clang, files, entries, arch, defines, cache)
    name = next(iter(files))

    def entry_points(module: Module) -> list[EntryPoint]:
        return [_entry_point(module, number, entry) for number, entry in enumerate(entries)]

    return _build(
        root, name, files, entries, ptx, entry_points, f"clang: {clang.identity}, {arch}", arch, cache, sanitizer
    )


def build_ptx_file(
    root: Path,
    path: Path,
    entries: Mapping[str, str],
    *,
    arch: str = "sm_90",
    cache: Path | None = None,
    sanitizer: Sanitizer = "",
) -> HostBuild:
    """Build a PTX file that the project brings. `entries` maps names in launches to names in the file.

    The record names the compiler that the file's first comment names. Raises CompileError for what the CPU does not
    support, ProjectError if the file is missing.
    """
    check_arch(arch)
    full = root / path
    if not full.is_file():
        raise ProjectError(f"{path}: no such file in {root}; correct the variant's Machine")
    name = full.resolve().relative_to(root.resolve()).as_posix()
    content = read_source(full, name)
    text = content.decode(errors="replace")

    def entry_points(_module: Module) -> list[EntryPoint]:
        return [EntryPoint(entry, symbol) for entry, symbol in entries.items()]

    cache = (cache or default_cache()).resolve()
    producer = parse_module(text).producer or "an unnamed compiler"
    return _build(
        root, name, {name: content}, tuple(entries), text, entry_points, f"PTX of: {producer}", arch, cache, sanitizer
    )


def _ptx(
    clang: Clang,
    files: Mapping[str, bytes],
    entries: tuple[str, ...],
    arch: str,
    defines: Mapping[str, str],
    cache: Path,
) -> str:
    """clang's PTX, kept in the cache: the builds for sanitizers share it."""
    parts = {
        "clang": clang.identity,
        "arch": arch,
        "defines": dict(defines),
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
        text = compile_to_ptx(clang, tree, next(iter(files)), tuple(files), entries, arch=arch, defines=defines)
        (folder / _MODULE).write_text(text)

    folder = cached_folder(cache, "ptx", build_key(parts), (_MODULE,), build)
    return (folder / _MODULE).read_text()


def _build(
    root: Path,
    source: str,
    files: Mapping[str, bytes],
    entries: tuple[str, ...],
    ptx: str,
    entry_points: Callable[[Module], list[EntryPoint]],
    front_end: str,
    arch: str,
    cache: Path,
    sanitizer: Sanitizer,
) -> HostBuild:
    compiler = find_compiler()
    tools = Toolchain(compiler, find_instrumentation(compiler, sanitizer))
    flags = (*tools.kernel_flags, *(() if sanitizer else ("-O1",)), f"-DSIMT_ARCH={TARGETS[arch].model}")
    parts = {
        "backend": "host",
        "front_end": front_end,
        "arch": arch,
        "compiler": compiler.version,
        "flags": flags,
        "link_flags": tools.link_flags,
        "entries": entries,
        "sources": {name: sha256(content) for name, content in files.items()},
        "ptx": sha256(ptx.encode()),
        "tool": _tool_hashes(),
        "runtime": runtime_hashes(),
    }
    key = build_key(parts)

    def build(folder: Path) -> None:
        module = parse_module(ptx)
        points = entry_points(module)
        objects = tools.runtime_objects(cache)
        main = folder / "program.cc"
        main.write_text(
            f"{translate(module, points)}namespace simt {{\n{kernel_table(module, points)}"
            f"extern const unsigned kernel_count = {len(points)};\n"
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
            source=source,
            sources={name: sha256(content) for name, content in files.items()},
            entries=entries,
            compiler=f"{front_end}; {compiler.version}",
            flags=flags,
            binary_sha256=sha256(content),
            binary_fnv=fnv1a64(content),
            machine_code=program_digests((folder / KERNEL).read_bytes(), entries, files),
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
    for position, (kind, size, _) in enumerate(rows, 1):
        if kind == "unsupported":
            raise CompileError(
                f"entry {entry}, parameter {position} has {size} bytes: a kernel parameter must be a pointer, an "
                "integer, a float or a double"
            )
    return EntryPoint(entry, kernel.name, tuple(rows))


@cache_in_process
def _tool_hashes() -> dict[str, str]:
    """Hashes of the translator's own files."""
    folder = Path(audit.ptx.__file__).parent
    return {path.name: sha256(path.read_bytes()) for path in sorted(folder.glob("*.py"))}
