"""The process that compiles one CUDA source by NVRTC, through cuda.core: `python -m audit.compile.nvrtc FOLDER`.

The folder holds the sources and `nvrtc.json` (`CompileOrder`); the result goes to `nvrtc.result`. NVRTC can neither be
stopped nor crash alone inside another program.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from audit import processes
from audit.compile.rewrite import quoted
from audit.compile.sources import PORTABLE
from audit.errors import CompileError, ToolMissing

ORDER, RESULT = "nvrtc.json", "nvrtc.result"
VERBOSE = "--ptxas-options=-v"  # ptxas then says what each kernel takes
PACKAGES = "cuda-core cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
_MAIN = "kernel_audit_main.cu"


class CompileFlags(msgspec.Struct, frozen=True):
    """What a cubin is compiled for and with."""

    arch: str
    defines: dict[str, str]
    line_info: bool

    @property
    def of_lines(self) -> tuple[str, ...]:
        return ("-lineinfo",) if self.line_info else ()

    @property
    def words(self) -> tuple[str, ...]:
        """As the command line has them."""
        named = (f"-D{key}={value}" for key, value in self.defines.items())
        return ("-std=c++17", f"-arch={self.arch}", "--fmad=false", *self.of_lines, VERBOSE, *named)


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """A cubin, the name inside it of every entry, and what made it."""

    cubin: bytes
    symbols: dict[str, str]
    compiler: str
    flags: tuple[str, ...]
    log: str  # what ptxas says of every kernel


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why there is no cubin: the source is wrong, or something is missing here."""

    message: str
    by_source: bool


class CompileOrder(msgspec.Struct, frozen=True):
    """What is to be compiled: a source by its name in the folder."""

    source: str
    entries: tuple[str, ...]
    flags: CompileFlags


def find_cuda_core() -> Any:
    """The module, or None."""
    for name in ("cuda.core", "cuda.core.experimental"):
        try:
            module = importlib.import_module(name)
            importlib.import_module("cuda.bindings.nvrtc")
        except ImportError:
            continue
        if hasattr(module, "Program"):
            return module
    return None


def _compile(core: Any, tree: Path, source: str, entries: tuple[str, ...], flags: CompileFlags) -> Compiled:
    include = _cuda_headers()
    options = core.ProgramOptions(
        name=str(tree / _MAIN),  # NVRTC looks for quoted includes in the folder of this name first
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
        # Never print the compiled object: its repr needs a driver, and can hang what comes after.
        compiled = core.Program(f"#include {quoted(source)}\n", "c++", options).compile(
            "cubin", name_expressions=entries, logs=log
        )
    except Exception as error:
        if "NVRTC_ERROR_COMPILATION" not in str(error) and "NVRTC_ERROR_NAME" not in str(error):
            raise
        raise CompileError(str(error)) from error
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, major, minor = nvrtc.nvrtcVersion()
    return Compiled(
        bytes(compiled.code),
        {name: symbol.decode() for name, symbol in compiled.symbol_mapping.items()},
        f"NVRTC {major}.{minor}, headers {_header_version(include)}, cuda.core {version('cuda-core')}",
        flags.words,
        log.getvalue(),
    )


def _cuda_headers() -> Path:
    """The folder of cuda_runtime.h: of the packages, else of an installed toolkit."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(each) for each in (spec.submodule_search_locations or [])] if spec else []
    candidates = [include for folder in folders for include in sorted(folder.glob("*/include"), reverse=True)]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            candidates.append(Path(os.environ[variable]) / "include")
    candidates.append(Path("/usr/local/cuda/include"))
    for include in candidates:
        if (include / "cuda_fp16.h").is_file() and (include / "crt" / "mma.h").is_file():
            return include
    raise ToolMissing(f"NVRTC is here, but CUDA's headers are not: `pip install {PACKAGES}`, or set CUDA_HOME")


def _header_version(include: Path) -> str:
    text = (include / "cuda.h").read_text(errors="replace") if (include / "cuda.h").is_file() else ""
    found = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", text)
    return found.group(1) if found else "unknown"


def main(folder: Path) -> None:
    """Compile what the folder's order says."""
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=CompileOrder)
    result: Compiled | Refusal
    try:
        result = _compile(find_cuda_core(), folder, order.source, order.entries, order.flags)
    except (CompileError, ToolMissing) as error:
        result = Refusal(str(error), isinstance(error, CompileError))
    (folder / RESULT).write_bytes(msgspec.msgpack.encode(result))


if __name__ == "__main__":
    processes.end_with_parent()
    main(Path(sys.argv[1]))
