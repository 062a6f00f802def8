"""Compiles a CUDA source to a cubin with nvcc: the whole file, with its host code, by the flags that the user gives."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from audit import processes
from audit.compile import compiler, headers
from audit.compile.device_order import KEPT, MAIN, Compiled, DeviceOrder
from audit.compile.device_sources import leave_out_host_code
from audit.compile.headers import HeaderSearch
from audit.compile.messages import compiler_errors
from audit.compile.rewrite import quoted
from audit.compile.sources import PORTABLE
from audit.errors import CompileError, ToolMissing

_TABLE = "kernel_audit_entries"
_CUBIN, _DEPENDENCIES = "kernel_audit.cubin", "kernel_audit.d"
_LOCATED = "nvcc fatal"  # how a message of nvcc itself begins


class Attempt(NamedTuple):
    """One call of nvcc."""

    code: int
    errors: str


def compile_by_nvcc(nvcc: Path, tree: Path, order: DeviceOrder) -> Compiled:
    """Compile the source of an order, which lies in `tree`.

    Where headers of host libraries are missing, host code that needs them cannot compile: then the device code alone is
    compiled. Raises CompileError for the source, ToolMissing if this nvcc cannot compile for the architecture.
    """
    (tree / MAIN).write_text(_main(order))
    (tree / KEPT).mkdir(exist_ok=True)
    search = HeaderSearch(tree)
    try:
        return _compile(nvcc, tree, order, search)
    except CompileError:
        if not search.is_incomplete:
            raise
    leave_out_host_code(tree, order.files, order.entries)
    shutil.rmtree(tree / headers.STUBS, ignore_errors=True)
    return _compile(nvcc, tree, order, HeaderSearch(tree, host_libraries=False))


def _compile(nvcc: Path, tree: Path, order: DeviceOrder, search: HeaderSearch) -> Compiled:
    while True:
        attempt = _run(nvcc, tree, order, search)
        if attempt.code == 0:
            break
        if not search.provided(attempt.errors):
            _refuse(nvcc, tree, order, search, attempt.errors)
    return Compiled(
        (tree / _CUBIN).read_bytes(),
        _symbols(tree, order),
        f"nvcc {_version(nvcc)}",
        order.words,
        attempt.errors,
        tuple(search.stubs),
        search.host_libraries,
        tuple(sorted(_read(tree))),
    )


def _main(order: DeviceOrder) -> str:
    """The source; below it a table makes nvcc instantiate the templates, and lists the entries' names in the PTX."""
    table = "".join(f"  (void*)({entry}),\n" for entry in order.expressions)
    listed = f"__device__ void* const volatile {_TABLE}[] = {{\n{table}}};\n" if table else ""
    return f"#include {quoted(order.source)}\n{listed}"


def _run(nvcc: Path, tree: Path, order: DeviceOrder, search: HeaderSearch) -> Attempt:
    folders = [f"-I{folder}" for folder in (".", PORTABLE, *search.folders, headers.STUBS)]
    command = [str(nvcc), *order.words, *folders, "-cubin", "--keep", "--keep-dir", KEPT]
    command += ["-MD", "-MF", _DEPENDENCIES, "-o", _CUBIN, MAIN]
    env = {**os.environ, "TMPDIR": str(tree), "LC_ALL": "C"}
    done = processes.run_process(command, compiler.TIME_LIMIT, cwd=tree, env=env)
    errors = (done.errors + done.output).decode(errors="replace")
    compiler.require_compiler_end("nvcc", done.code, errors)
    return Attempt(done.code or 0, errors)


def _refuse(nvcc: Path, tree: Path, order: DeviceOrder, search: HeaderSearch, errors: str) -> None:
    for line in errors.splitlines():
        if line.startswith(_LOCATED) and "gpu architecture" in line:
            raise ToolMissing(
                f"{nvcc} cannot compile for {order.code_arch} ({line.partition(':')[2].strip()}); set CUDA_HOME to another "
                "toolkit, or KERNEL_AUDIT_NVCC=none for NVRTC"
            )
        if line.startswith(_LOCATED):
            raise CompileError(f"{order.source}: {line}; correct the flags {' '.join(order.flags)}")
    raise CompileError(compiler_errors(errors, tree, order) + search.remark())


def _symbols(tree: Path, order: DeviceOrder) -> dict[str, str]:
    """The name in the PTX of each entry that is an expression."""
    if not order.expressions:
        return {}
    (ptx,) = (tree / KEPT).glob("*.ptx")
    names = re.search(rf"\b{_TABLE}\[\d+\] = {{([^}}]*)}}", ptx.read_text())
    if names is None:
        raise CompileError(
            f"{order.source}: expected nvcc to name {', '.join(order.expressions)} in its PTX, but it does not; "
            "declare them as kernels (__global__)"
        )
    return dict(zip(order.expressions, (name.strip() for name in names.group(1).split(",")), strict=True))


def _read(tree: Path) -> list[str]:
    """The files outside of the tree, of the toolkit and of the system that the compiler read."""
    text = (tree / _DEPENDENCIES).read_text(errors="replace").partition(":")[2].replace("\\\n", " ")
    files = [Path(os.path.normpath(tree / name.replace("\\ ", " "))) for name in re.findall(r"(?:\\ |\S)+", text)]
    known = (tree, Path("/usr"), PORTABLE)
    return [str(file) for file in files if not any(file.is_relative_to(folder) for folder in known)]


def _version(nvcc: Path) -> str:
    done = processes.run_process([str(nvcc), "--version"], compiler.TIME_LIMIT)
    lines: Sequence[str] = done.output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "of unknown version"
