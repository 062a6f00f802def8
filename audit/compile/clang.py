"""clang as a front end for CUDA: it writes PTX for a source, with NVIDIA's headers and without NVIDIA's libraries."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from audit import processes
from audit.compile import headers
from audit.compile.compiler import TIME_LIMIT, first_errors, require_compiler_end
from audit.compile.device_order import include_folders
from audit.compile.device_sources import leave_out_host_code
from audit.compile.headers import HeaderSearch
from audit.compile.program import SourceUnit
from audit.compile.source_words import host_folders, host_standard, is_contracted
from audit.compile.sources import PORTABLE
from audit.compile.toolkit import cuda_headers, headers_version
from audit.errors import CompileError, ToolMissing

CHOICE = "KERNEL_AUDIT_CLANG"
"""The variable that names clang; `none` does without it."""
LEAST = 19
"""The oldest release that reads the headers of CUDA 12 and later."""
MAIN, PTX = "kernel_audit_main.cu", "kernel_audit.ptx"

_CANDIDATES = ("clang++-22", "clang++-21", "clang++-20", "clang++-19", "clang++")
_ANSWER_LIMIT = 60.0  # seconds, for a question about itself
_INSTALL = "install it (Debian, Ubuntu: `apt-get install clang-22`, or another release from 19 on)"
# ptxas fuses a * b + c by default; IEEE's operations, as written, are what a CPU can show to be right.
_LANGUAGE = (
    "-x", "cuda", "--cuda-device-only", "-S", "-O1", "-gline-directives-only",
    "-nocudainc", "-nocudalib", "-Wno-unknown-cuda-version",
    "-Xclang", "-target-feature", "-Xclang", "+ptx86", "-Xclang", "-target-sdk-version=12.8", "-fno-caret-diagnostics",
    "-ferror-limit=5", "-fwrapv", "-fno-strict-aliasing",
    # What C++ leaves undefined and clang would therefore remove becomes a call, which the program reports.
    "-Xclang", "-fsanitize=return,integer-divide-by-zero", "-Xclang", "-fsanitize-minimal-runtime",
)  # fmt: skip
_WRAPPER, _INTRINSICS = "__clang_cuda_runtime_wrapper.h", "__clang_cuda_intrinsics.h"
# clang's wrapper includes them for classes that no kernel here uses.
_EMPTY = ("curand_mtgp32_kernel.h",)


class Clang(msgspec.Struct, frozen=True):
    """A clang that can compile CUDA, and the headers of CUDA that go with it."""

    command: str
    version: str
    resources: Path  # the folder of its own headers
    include: Path
    headers: str  # their CUDA version

    @property
    def identity(self) -> str:
        """Compiler and headers as a record names them."""
        return f"{self.version}, headers {self.headers}"


def find_clang() -> Clang | None:
    """The clang that $KERNEL_AUDIT_CLANG names, else the newest one; None without any, or without CUDA's headers.

    Raises ToolMissing if the variable names no clang that is new enough.
    """
    chosen = os.environ.get(CHOICE, "").strip()
    if chosen == "none":
        return None
    for command in (chosen,) if chosen else _CANDIDATES:
        path = shutil.which(command)
        release = _release(path) if path else None
        if path and release and release[0] >= LEAST:
            try:
                include = cuda_headers()
            except ToolMissing:
                return None
            version = f"{os.path.realpath(path)}: {release[1]}"
            return Clang(path, version, _resources(path), include, headers_version(include))
    if chosen:
        raise ToolMissing(f"{CHOICE}={chosen}: expected a clang from release {LEAST} on; {_INSTALL}, or say `none`")
    return None


def require_clang() -> Clang:
    """Like `find_clang`. Raises ToolMissing where there is none."""
    clang = find_clang()
    if clang is None:
        cuda_headers()
        raise ToolMissing(f"no clang from release {LEAST} on was found; {_INSTALL}, or set {CHOICE}")
    return clang


def _release(path: str) -> tuple[int, str] | None:
    asked = processes.run_process([path, "--version"], _ANSWER_LIMIT)
    line = asked.output.decode(errors="replace").splitlines()[:1]
    found = re.search(r"clang version (\d+)", line[0]) if asked.code == 0 and line else None
    return (int(found[1]), line[0]) if found else None


def _resources(path: str) -> Path:
    asked = processes.run_process([path, "-print-resource-dir"], _ANSWER_LIMIT)
    return Path(asked.output.decode(errors="replace").strip()) / "include"


def _with_effects(text: str) -> str:
    """A header of clang in which every inline PTX is volatile and touches memory.

    In clang 22 atomicAdd of float2 and float4 and the loads with cache hints are neither, so that an atomic whose
    result nobody reads vanishes.
    """
    parts, at = [], 0
    for match in re.finditer(r"\b(?:asm|__asm__)\s*\((?=\s*\")", text):
        end, depth = match.end(), 1
        while depth:
            if text[end] == '"':
                end = text.index('"', end + 1)
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        inner = text[match.end() : end - 1].rstrip().rstrip(":").rstrip()
        sections = re.sub(r'"[^"]*"', "", inner).count(":")
        statement = text[match.start() : end]
        if sections < 3:
            statement = f'asm volatile({inner}{" :" * (3 - sections)} "memory")'
        parts += [text[at : match.start()], statement]
        at = end
    return "".join([*parts, text[at:]])


def compile_to_ptx(
    clang: Clang, tree: Path, root: Path, unit: SourceUnit, files: Sequence[str], entries: Sequence[str], arch: str
) -> str:
    """The PTX of a unit whose `files`, the source first, lie in `tree`, with tables that name `entries` and constants.

    `root` is the project's folder. Raises CompileError for the source.
    """
    (tree / MAIN).write_text(_main((files[0], *unit.also), entries, unit.constants))
    (tree / headers.STUBS).mkdir(exist_ok=True)
    words = (
        *_LANGUAGE,
        *(host_standard(unit.words) or ("-std=c++17",)),
        f"-ffp-contract={'fast' if is_contracted(unit.words) else 'off'}",
        f"--cuda-gpu-arch={arch}",
        f"-fdebug-prefix-map={tree}=.",
        f"-ffile-prefix-map={tree}/=",
        *host_folders(include_folders(unit.words), tree, root),
        *(f"-D{name}={value}" for name, value in unit.defines.items()),
    )
    search = HeaderSearch(tree)
    try:
        return _compile(clang, tree, words, search)
    except CompileError as error:
        leave_out_host_code(tree, files, entries)
        try:
            return _compile(clang, tree, words, HeaderSearch(tree, host_libraries=False))
        except CompileError:
            raise error from None


def _compile(clang: Clang, tree: Path, words: Sequence[str], search: HeaderSearch) -> str:
    for name in _EMPTY:
        headers.write_stub(tree, name)
    for name in (_WRAPPER, _INTRINSICS):
        headers.write_stub(tree, name, _with_effects((clang.resources / name).read_text()))
    folders = (clang.include, clang.include / "cccl")
    while True:
        command = [
            clang.command,
            *words,
            f"-iquote{tree}",
            f"-I{tree / headers.STUBS}",
            "-include",
            _WRAPPER,
            *("-include", "kernel_audit_prelude.h"),
            f"-I{PORTABLE}",
            f"-I{PORTABLE.parent / 'clang'}",
            *(word for folder in (*folders, *search.folders) for word in ("-isystem", folder)),
            MAIN,
            "-o",
            PTX,
        ]
        env = {**os.environ, "LC_ALL": "C", "TMPDIR": str(tree)}
        done = processes.run_process(command, TIME_LIMIT, cwd=tree, env=env)
        log = done.errors.decode(errors="replace").replace("./", "")
        require_compiler_end("clang", done.code, log)
        if done.code == 0:
            return (tree / PTX).read_text(errors="replace")
        if not search.provided(log):
            raise CompileError((first_errors(log) or f"clang ended with {done.code}") + search.remark())


def _main(sources: Sequence[str], entries: Sequence[str], constants: Sequence[str]) -> str:
    """The translation unit: the sources, then what the entries are called and what their parameters are."""
    lines = [
        *(f'#include "{source}"' for source in sources),
        "#include <kernel_audit_entries.h>",
        '#line 1 "the list of entries"',
        *_tables(entries),
        '#line 1 "the list of constants"',
    ]
    for number, name in enumerate(constants):
        lines.append(
            f"{_TABLE} kernel_audit_constant_{number}[] = {{(const void*)&::{name}, (const void*)sizeof(::{name})}};"
        )
    return "\n".join(lines) + "\n"


_TABLE = 'extern "C" __device__ __attribute__((used)) const void*'


def _tables(entries: Sequence[str]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        made = f"kernel_audit::Entry<{entry}>"
        yield f"{_TABLE} kernel_audit_entry_{number}[] = {{(const void*){made}::function, {made}::parameters}};"
