"""The process that compiles one CUDA source by NVRTC: `python -m audit.compile.nvrtc FOLDER`.

The folder holds the sources and `nvrtc.json` (`DeviceOrder`); the result goes to `nvrtc.result`. NVRTC can neither be
stopped nor crash alone inside another program. It has no C++ library and takes no host code: libcu++ stands in for the
one, and the other is left out where the whole file does not compile.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from audit import processes
from audit.compile import headers
from audit.compile.device_order import MAIN, Compiled, DeviceOrder, Refusal
from audit.compile.device_sources import leave_out_host_code
from audit.compile.headers import HeaderSearch
from audit.compile.messages import compiler_errors
from audit.compile.sources import PORTABLE
from audit.compile.toolkit import cuda_headers, headers_version
from audit.errors import CompileError, ToolMissing

ORDER, RESULT = "nvrtc.json", "nvrtc.result"
_PRELUDE = "kernel_audit_prelude.h"
# What nvcc includes before any source, as far as NVRTC lacks it.
_PRELUDE_TEXT = """#pragma once
#include <cuda_runtime.h>
#include <cuda/std/cstdint>
#include <cuda/std/climits>
#include <cuda/std/cfloat>
#ifndef INFINITY
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000ll))
#endif
#ifndef NAN
#define NAN (__builtin_bit_cast(float, 0x7fffffff))
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef long int ssize_t;
"""
_VALUED = ("-Xcompiler", "--compiler-options", "-Xlinker", "-ccbin", "--compiler-bindir", "-t", "--threads", "-L", "-l")
_HOST_FLAGS = (
    *_VALUED, "-O", "--optimize", "--expt-", "-expt-", "--extended-lambda", "-extended-lambda", "-m64", "--m64",
    "--library", "-Xcudafe", "-Werror", "-W", "-allow-unsupported-compiler", "--allow-unsupported-compiler",
    "-forward-unknown", "--forward-unknown",
)  # fmt: skip
_RENAMED = {"-Xptxas": "--ptxas-options", "-isystem": "-I", "-maxrregcount": "--maxrregcount"}
_WITH_NEXT = (*_RENAMED, "--ptxas-options", "-I", "-D", "-U", "-include")


class Product(msgspec.Struct, frozen=True):
    """What NVRTC made of one attempt: a cubin, or None; and its log."""

    cubin: bytes | None
    symbols: dict[str, str]
    log: str


def is_installed() -> bool:
    """Whether NVRTC's bindings for Python are installed. They are not loaded."""
    try:
        return importlib.util.find_spec("cuda.bindings.nvrtc") is not None
    except ImportError:
        return False


def compile_by_nvrtc(nvrtc: Any, tree: Path, order: DeviceOrder) -> Compiled:
    """Compile the source of an order, which lies in `tree`.

    Raises CompileError for the source, ToolMissing without CUDA's headers.
    """
    include = cuda_headers()
    cccl = next((folder for folder in (include / "cccl", include) if (folder / "cuda/std/cstdint").is_file()), None)
    if cccl is None:
        raise ToolMissing(f"NVRTC needs libcu++, which is not in {include}: `pip install nvidia-cuda-cccl`")
    (tree / _PRELUDE).write_text(_PRELUDE_TEXT)
    folders = (tree, tree / headers.STUBS, PORTABLE, include, cccl)
    options = [*nvrtc_words(order.words), "-default-device", *(f"-I{folder}" for folder in folders)]
    search = HeaderSearch(tree, cccl, host_libraries=False)
    search.prepare()
    product = _compile(nvrtc, tree, order, search, options)
    whole = product.cubin is not None
    if not whole:
        leave_out_host_code(tree, order.files, order.entries)
        product = _compile(nvrtc, tree, order, search, options)
    if product.cubin is None:
        raise CompileError(compiler_errors(product.log, tree, order) + search.remark())
    _, major, minor = nvrtc.nvrtcVersion()
    return Compiled(
        product.cubin,
        product.symbols,
        f"NVRTC {major}.{minor}, headers {headers_version(include)}",
        order.words,
        product.log,
        tuple(search.stubs),
        whole,
    )


def _compile(nvrtc: Any, tree: Path, order: DeviceOrder, search: HeaderSearch, options: list[str]) -> Product:
    while True:
        product = _attempt(nvrtc, tree, order, [*options, *(f"-I{folder}" for folder in search.folders)])
        if product.cubin is not None or not search.provided(product.log):
            return product


def nvrtc_words(words: tuple[str, ...]) -> list[str]:
    """The words of nvcc's command line that concern the device, as NVRTC writes them."""
    kept = []
    left = iter(words)
    for word in left:
        if word in _VALUED:
            next(left, "")
        elif word in _WITH_NEXT:
            name = _RENAMED.get(word, word)
            kept.append(name + ("=" if name.startswith("--") else "") + next(left, ""))
        elif word.startswith("-isystem"):
            kept.append(f"-I{word.removeprefix('-isystem').removeprefix('=')}")
        elif not word.startswith(_HOST_FLAGS):
            kept.append(word)
    return kept


def _attempt(nvrtc: Any, tree: Path, order: DeviceOrder, options: list[str]) -> Product:
    source = f'#include "{_PRELUDE}"\n{order.included}'
    # NVRTC looks for quoted includes in the folder of this name first.
    result, program = nvrtc.nvrtcCreateProgram(source.encode(), str(tree / MAIN).encode(), 0, None, None)
    _require(nvrtc, result, "nvrtcCreateProgram")
    for entry in order.expressions:
        _require(nvrtc, nvrtc.nvrtcAddNameExpression(program, entry.encode())[0], "nvrtcAddNameExpression")
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    errors = nvrtc.nvrtcResult
    if result in (errors.NVRTC_ERROR_COMPILATION, errors.NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID):
        return Product(None, {}, log)
    if result == errors.NVRTC_ERROR_INVALID_OPTION:
        if "--gpu-architecture" in log or "-arch" in log:
            raise ToolMissing(
                f"this NVRTC cannot compile for {order.code_arch}: {log.strip()}; install another release"
            )
        raise CompileError(f"{order.source}: NVRTC does not take the flags {' '.join(order.flags)}: {log.strip()}")
    _require(nvrtc, result, "nvrtcCompileProgram")
    symbols = {}
    for entry in order.expressions:
        result, name = nvrtc.nvrtcGetLoweredName(program, entry.encode())
        _require(nvrtc, result, "nvrtcGetLoweredName")
        symbols[entry] = name.decode()
    cubin = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    nvrtc.nvrtcDestroyProgram(program)
    return Product(cubin, symbols, log)


def _bytes(size_of: Any, content_of: Any, program: Any) -> bytes:
    _, size = size_of(program)
    content = bytes(int(size))
    content_of(program, content)
    return content


def _text(size_of: Any, content_of: Any, program: Any) -> str:
    return _bytes(size_of, content_of, program).decode(errors="replace").replace("\0", "").strip()


def _require(nvrtc: Any, result: Any, function: str) -> None:
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"{function}: {result.name}")


def without_driver(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the folders of a driver, which NVRTC's bindings would load: compiling needs none."""
    folders = environment.get("LD_LIBRARY_PATH", "").split(":")
    kept = [folder for folder in folders if not (Path(folder) / "libcuda.so.1").exists()]
    return {**environment, "LD_LIBRARY_PATH": ":".join(kept)}


def main(folder: Path) -> None:
    """Compile what the folder's order says."""
    os.chdir(folder)  # folders of -I are relative to the project
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=DeviceOrder)
    result: Compiled | Refusal
    try:
        result = compile_by_nvrtc(importlib.import_module("cuda.bindings.nvrtc"), folder, order)
    except (CompileError, ToolMissing) as error:
        result = Refusal(str(error), isinstance(error, CompileError))
    (folder / RESULT).write_bytes(msgspec.msgpack.encode(result))


if __name__ == "__main__":
    processes.end_with_parent()
    main(Path(sys.argv[1]))
