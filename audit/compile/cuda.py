"""Compiles a CUDA source to a cubin with NVRTC through cuda.core, or with nvcc. Needs neither GPU nor driver.

The compiler fuses and approximates nothing that the source does not request (`--fmad=false`, no fast math), so that the
bytes can equal those of the host build.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from audit import processes
from audit.compile import compiler, nvrtc
from audit.compile import cubin as contents
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.nvrtc import Compiled, CompileFlags
from audit.compile.nvrtc import find_cuda_core as _cuda_core
from audit.compile.rewrite import quoted
from audit.compile.sources import PORTABLE, project_sources
from audit.errors import CompileError, MachineError, PlanError, ToolMissing
from audit.scratch import scratch_folder

_MAIN = "kernel_audit_main.cu"
_TABLE = "kernel_audit_entries"
_MESSAGE_LINES = 20


class CubinBuild(msgspec.Struct, frozen=True):
    """A cubin; `symbols` maps each entry to its name inside the cubin."""

    cubin: bytes
    symbols: dict[str, str]
    identity: BuildIdentity


def compile_cubin(
    root: Path,
    source: Path,
    entries: Sequence[str],
    *,
    arch: str = "sm_90",
    defines: Mapping[str, str] = {},
    line_info: bool = False,
) -> CubinBuild:
    """Compile `source` (a path, absolute or relative to `root`) with the kernels `entries` for one architecture.

    `line_info` lets a sanitizer name lines of the source; it changes no instruction. The compiler reads a copy of the
    bytes that the identity records. Raises ProjectError or CompileError for the source, ToolMissing if there is neither
    cuda.core nor nvcc.
    """
    entries = checked_entries(entries)
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise PlanError(f"--arch: expected a real architecture such as sm_90, but got {arch!r}")
    files = project_sources(root, source)
    first = next(iter(files))
    flags = CompileFlags(arch, dict(defines), line_info)
    with scratch_folder() as tree:
        for file, content in files.items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_bytes(content)
        by = _by_nvrtc if _cuda_core() is not None else _by_nvcc
        compiled = by(tree, first, entries, flags)
    hashes = {file: sha256(content) for file, content in files.items()}
    parts = {
        "backend": "cuda",
        "arch": arch,
        "compiler": compiled.compiler,
        "flags": compiled.flags,
        "entries": entries,
        "sources": hashes,
        "portable": {path.name: sha256(path.read_bytes()) for path in PORTABLE.iterdir()},
    }
    identity = BuildIdentity(
        backend="cuda",
        arch=arch,
        key=build_key(parts),
        source=first,
        sources=hashes,
        entries=entries,
        compiler=compiled.compiler,
        flags=compiled.flags,
        binary_sha256=sha256(compiled.cubin),
        binary_fnv=fnv1a64(compiled.cubin),
        code=contents.describe_cubin(compiled.cubin, compiled.symbols, compiled.log),
    )
    return CubinBuild(compiled.cubin, compiled.symbols, identity)


def _by_nvrtc(tree: Path, source: str, entries: tuple[str, ...], flags: CompileFlags) -> Compiled:
    """NVRTC in a process of its own, which can be stopped, and whose end is not this one's."""
    (tree / nvrtc.ORDER).write_bytes(msgspec.json.encode(nvrtc.CompileOrder(source, entries, flags)))
    command = [sys.executable, "-P", "-m", nvrtc.__name__, str(tree)]
    done = processes.run_process(command, compiler.TIME_LIMIT, env=_without_driver(processes.package_environment()))
    said = done.errors.decode(errors="replace").strip()
    compiler.require_compiler_end("NVRTC", done.code, said)
    if done.code != 0:
        raise MachineError(f"NVRTC failed: {(said.splitlines() or ['it printed nothing'])[-1]}; nothing was judged")
    result = msgspec.msgpack.decode((tree / nvrtc.RESULT).read_bytes(), type=Compiled | nvrtc.Refusal)
    if isinstance(result, Compiled):
        return result
    raise CompileError(_shortened(result.message, tree)) if result.by_source else ToolMissing(result.message)


def _without_driver(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the folders of a driver, which cuda.core would load: compiling needs none."""
    folders = environment.get("LD_LIBRARY_PATH", "").split(":")
    kept = [folder for folder in folders if not (Path(folder) / "libcuda.so.1").exists()]
    return {**environment, "LD_LIBRARY_PATH": ":".join(kept)}


def _by_nvcc(tree: Path, source: str, entries: tuple[str, ...], flags: CompileFlags) -> Compiled:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise ToolMissing(
            f"a cubin needs NVRTC or nvcc: `pip install {nvrtc.PACKAGES}`, or put a CUDA toolkit's nvcc on PATH"
        )
    # The table makes nvcc instantiate the templates; in the PTX it lists each entry's name.
    table = ", ".join(f"(void*)({entry})" for entry in entries)
    (tree / _MAIN).write_text(f"#include {quoted(source)}\n__device__ void* const volatile {_TABLE}[] = {{{table}}};\n")
    _run([nvcc, *flags.words, f"-I{tree}", f"-I{PORTABLE}", "-ptx", "-o", "main.ptx", _MAIN], tree)
    names = re.search(rf"\b{_TABLE}\[\d+\] = {{([^}}]*)}}", (tree / "main.ptx").read_text())
    if names is None:
        raise CompileError(
            f"{source}: expected nvcc to name {', '.join(entries)} in its PTX, but it does not; "
            "declare them as kernels (__global__)"
        )
    symbols = [name.strip() for name in names.group(1).split(",")]
    _, assembled = _run(
        [nvcc, f"-arch={flags.arch}", *flags.of_lines, nvrtc.VERBOSE, "-cubin", "-o", "main.cubin", "main.ptx"], tree
    )
    release = _run([nvcc, "--version"], tree)[0].strip().splitlines()[-1]
    return Compiled(
        (tree / "main.cubin").read_bytes(),
        dict(zip(entries, symbols, strict=True)),
        f"nvcc {release}",
        flags.words,
        assembled,
    )


def _run(command: Sequence[str], tree: Path) -> tuple[str, str]:
    """What a program printed on its two streams."""
    done = processes.run_process(command, compiler.TIME_LIMIT, cwd=tree, env={**os.environ, "TMPDIR": str(tree)})
    output, errors = done.output.decode(errors="replace"), done.errors.decode(errors="replace")
    compiler.require_compiler_end("nvcc", done.code, errors)
    if done.code != 0:
        raise CompileError(_shortened(errors or output, tree))
    return output, errors


def _shortened(text: str, tree: Path) -> str:
    """The first lines of a compiler's log, with paths relative to the project."""
    lines = [line for line in text.replace(f"{tree}/", "").splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line and "NVRTC_ERROR" not in line), 0)
    return "\n".join(lines[first : first + _MESSAGE_LINES])
