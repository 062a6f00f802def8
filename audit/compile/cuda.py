"""Compiles a CUDA source to a cubin with NVRTC through cuda.core, or with nvcc. Needs neither GPU nor driver.

The compiler fuses and approximates nothing that the source does not request (`--fmad=false`, no fast math), so that the
bytes can equal those of the host build.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from audit.compile import cubin as contents
from audit.compile.identity import BuildIdentity, build_key, checked_entries, fnv1a64, sha256
from audit.compile.rewrite import quoted
from audit.compile.sources import PORTABLE, project_sources
from audit.errors import CompileError, PlanError, ToolMissing

_MAIN = "kernel_audit_main.cu"
_TABLE = "kernel_audit_entries"
_VERBOSE = "--ptxas-options=-v"  # makes ptxas report each kernel's resources
_PACKAGES = "cuda-core cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
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
    flags = _Flags(arch, dict(defines), line_info)
    with tempfile.TemporaryDirectory(prefix="kernel-audit-") as name:
        tree = Path(name)
        for file, content in files.items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_bytes(content)
        module = _cuda_core()
        compiled = (
            _by_nvrtc(module, tree, first, entries, flags)
            if module is not None
            else _by_nvcc(tree, first, entries, flags)
        )
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
        code=contents.describe(compiled.cubin, compiled.symbols, compiled.log),
    )
    return CubinBuild(compiled.cubin, compiled.symbols, identity)


class _Flags(msgspec.Struct, frozen=True):
    arch: str
    defines: dict[str, str]
    line_info: bool

    @property
    def line_options(self) -> tuple[str, ...]:
        return ("-lineinfo",) if self.line_info else ()

    @property
    def words(self) -> tuple[str, ...]:
        """The flags in the form of a command line."""
        named = (f"-D{key}={value}" for key, value in self.defines.items())
        return ("-std=c++17", f"-arch={self.arch}", "--fmad=false", *self.line_options, _VERBOSE, *named)


class _Compiled(msgspec.Struct, frozen=True):
    cubin: bytes
    symbols: dict[str, str]
    compiler: str
    flags: tuple[str, ...]
    log: str  # the output of ptxas


def _cuda_core() -> Any:
    for name in ("cuda.core", "cuda.core.experimental"):
        try:
            module = importlib.import_module(name)
            importlib.import_module("cuda.bindings.nvrtc")
        except ImportError:
            continue
        if hasattr(module, "Program"):
            return module
    return None


def _by_nvrtc(core: Any, tree: Path, source: str, entries: tuple[str, ...], flags: _Flags) -> _Compiled:
    include = _cuda_headers()
    options = core.ProgramOptions(
        name=str(tree / _MAIN),  # NVRTC searches quoted includes in this file's folder first
        arch=flags.arch,
        std="c++17",
        fma=False,
        define_macro=[(key, value) for key, value in flags.defines.items()] or None,
        include_path=[str(path) for path in (tree, PORTABLE, include, include / "cccl")],  # for cooperative groups
        ptxas_options=["-v"],
        lineinfo=flags.line_info or None,
    )
    log = io.StringIO()
    try:
        # Never print the compiled object: its repr needs a driver and can hang the next call.
        compiled = core.Program(f"#include {quoted(source)}\n", "c++", options).compile(
            "cubin", name_expressions=entries, logs=log
        )
    except Exception as error:
        if "NVRTC_ERROR_COMPILATION" not in str(error) and "NVRTC_ERROR_NAME" not in str(error):
            raise
        raise CompileError(_shortened(str(error), tree)) from error
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, major, minor = nvrtc.nvrtcVersion()
    return _Compiled(
        bytes(compiled.code),
        {name: symbol.decode() for name, symbol in compiled.symbol_mapping.items()},
        f"NVRTC {major}.{minor}, headers {_header_version(include)}, cuda.core {version('cuda-core')}",
        flags.words,
        log.getvalue(),
    )


def _by_nvcc(tree: Path, source: str, entries: tuple[str, ...], flags: _Flags) -> _Compiled:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise ToolMissing(
            f"a cubin needs NVRTC or nvcc: `pip install {_PACKAGES}`, or put a CUDA toolkit's nvcc on PATH"
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
    assembled = _run(
        [nvcc, f"-arch={flags.arch}", *flags.line_options, _VERBOSE, "-cubin", "-o", "main.cubin", "main.ptx"], tree
    )
    release = _run([nvcc, "--version"], tree).stdout.strip().splitlines()[-1]
    return _Compiled(
        (tree / "main.cubin").read_bytes(),
        dict(zip(entries, symbols, strict=True)),
        f"nvcc {release}",
        flags.words,
        assembled.stderr,
    )


def _run(command: Sequence[str], tree: Path) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise CompileError(_shortened(result.stderr or result.stdout, tree))
    return result


def _shortened(text: str, tree: Path) -> str:
    """The first lines of a compiler's log, with paths relative to the project."""
    lines = [line for line in text.replace(f"{tree}/", "").splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line and "NVRTC_ERROR" not in line), 0)
    return "\n".join(lines[first : first + _MESSAGE_LINES])


def _cuda_headers() -> Path:
    """The folder of CUDA's headers, from the packages or from an installed toolkit."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    candidates = [include for folder in folders for include in sorted(folder.glob("*/include"), reverse=True)]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            candidates.append(Path(os.environ[variable]) / "include")
    candidates.append(Path("/usr/local/cuda/include"))
    for include in candidates:
        if (include / "cuda_fp16.h").is_file() and (include / "crt" / "mma.h").is_file():
            return include
    raise ToolMissing(f"NVRTC is installed, but CUDA's headers are not: `pip install {_PACKAGES}`, or set CUDA_HOME")


def _header_version(include: Path) -> str:
    text = (include / "cuda.h").read_text(errors="replace") if (include / "cuda.h").is_file() else ""
    match = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", text)
    return match.group(1) if match else "unknown"
