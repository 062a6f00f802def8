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
from audit.compile.device_order import MAIN, PTX, Compiled, DeviceOrder
from audit.compile.device_sources import leave_out_host_code
from audit.compile.headers import HeaderSearch
from audit.compile.messages import compiler_errors
from audit.compile.sources import PORTABLE
from audit.errors import CompileError, ToolMissing

_TABLE = "kernel_audit_entries"
_CUBIN, _DEPENDENCIES = "kernel_audit.cubin", "kernel_audit.d"
_LOCATED = "nvcc fatal"  # how a message of nvcc itself begins
_MACHINE = re.compile(  # what the toolkit or its host compiler lacks, whatever the source
    r"^nvcc fatal\s*: (Unsupported gpu architecture|Failed to preprocess host compiler|No supported|Host compiler|"
    r"Cannot find|Could not)|unsupported (GNU|clang) version|^(gcc|g\+\+|cc1plus): (fatal )?error: .*(cannot|could not)"
)


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
    """The steps of `nvcc -cubin`, with a look at the PTX between them."""
    while True:
        made = _run(nvcc, tree, order, search, ["-ptx", "-MD", "-MF", _DEPENDENCIES, "-o", PTX, MAIN])
        if made.code == 0:
            break
        if not search.provided(made.errors):
            _refuse(nvcc, tree, order, search, made.errors)
    symbols = _take_table(tree, order)
    assembled = _run(nvcc, tree, order, search, ["-cubin", "-o", _CUBIN, PTX])
    if assembled.code != 0:
        _refuse(nvcc, tree, order, search, made.errors + assembled.errors)
    return Compiled(
        (tree / _CUBIN).read_bytes(),
        symbols,
        f"nvcc {_version(nvcc)}",
        order.words,
        assembled.errors,
        tuple(search.stubs),
        search.host_libraries,
        tuple(sorted(_read(tree))),
    )


def _main(order: DeviceOrder) -> str:
    """The source; below it a table makes nvcc instantiate the templates, and lists the entries' names in the PTX."""
    table = "".join(f"  (void*)({entry}),\n" for entry in order.expressions)
    listed = f"__device__ void* const volatile {_TABLE}[] = {{\n{table}}};\n" if table else ""
    return f"{order.included}{listed}"


def _run(nvcc: Path, tree: Path, order: DeviceOrder, search: HeaderSearch, step: Sequence[str]) -> Attempt:
    folders = [f"-I{folder}" for folder in (".", PORTABLE, *search.folders, headers.STUBS)]
    env = {**os.environ, "TMPDIR": str(tree), "LC_ALL": "C"}
    done = processes.run_process([str(nvcc), *order.words, *folders, *step], compiler.TIME_LIMIT, cwd=tree, env=env)
    errors = (done.errors + done.output).decode(errors="replace")
    compiler.require_compiler_end("nvcc", done.code, errors)
    return Attempt(done.code or 0, errors)


def _refuse(nvcc: Path, tree: Path, order: DeviceOrder, search: HeaderSearch, errors: str) -> None:
    for line in errors.splitlines():
        if _MACHINE.search(line):
            raise ToolMissing(
                f"{nvcc} cannot compile for {order.code_arch} here: {line.strip()}; set CUDA_HOME to another toolkit, "
                "NVCC_CCBIN to another host compiler, or KERNEL_AUDIT_NVCC=none for NVRTC"
            )
        if line.startswith(_LOCATED):
            raise CompileError(f"{order.source}: {line}; correct the flags {' '.join(order.flags)}")
    raise CompileError(compiler_errors(errors, tree, order) + search.remark())


def _take_table(tree: Path, order: DeviceOrder) -> dict[str, str]:
    """Take the table out of the PTX, as if it had never been there; the name of each entry that it lists."""
    if not order.expressions:
        return {}
    text = (tree / PTX).read_text()
    table = re.search(rf"^[^\n]*\b{_TABLE}\[\d+\] = {{([^}}]*)}};[ \t]*$", text, re.MULTILINE)
    if table is None:
        raise CompileError(
            f"{order.source}: expected nvcc to name {', '.join(order.expressions)} in its PTX, but it does not; "
            "declare them as kernels (__global__)"
        )
    (tree / PTX).write_text(text[: table.start()] + text[table.end() :])
    return dict(zip(order.expressions, (name.strip() for name in table.group(1).split(",")), strict=True))


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
