"""The compiler flags for each sanitizer's host programs, and whether this machine has what they need."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from audit import processes
from audit.compile.compiler import X86, Compiler
from audit.errors import ToolMissing

_ANSWER_LIMIT = 60.0  # seconds, for a question about the compiler

Sanitizer = Literal["", "thread", "address", "valgrind"]
"""The instrumentation of a host program; with `valgrind` every load of a kernel queries memcheck."""


class Instrumentation(msgspec.Struct, frozen=True):
    """How a host program is built for a sanitizer. The runtime is compiled with the macro only."""

    macro: str
    kernel: tuple[str, ...]
    link: tuple[str, ...]
    library: str  # needed to link; empty if none is
    header: str  # included by the runtime; empty if none is
    package: str  # the package of Debian and Ubuntu that provides them


# Calls that the runtime intercepts: audit/simt/scout.cc those that write or print, audit/simt/races.cc the others.
_INTERCEPTED = (
    *(f"__tsan_write{size}" for size in (1, 2, 4, 8, 16)),
    *(f"__tsan_unaligned_write{size}" for size in (2, 4, 8, 16)),
    *("__tsan_write_range", "memset", "memcpy", "memmove", "printf", "puts", "putchar"),
    *(f"__tsan_read{size}" for size in (1, 2, 4, 8, 16)),
    *(f"__tsan_unaligned_read{size}" for size in (2, 4, 8, 16)),
    *("__tsan_read_range", "__tsan_func_entry", "__tsan_func_exit", "__tsan_atomic_thread_fence"),
    *(
        f"__tsan_atomic{bits}_{name}"
        for bits in (8, 16, 32, 64)
        for name in (
            *("load", "store", "exchange", "fetch_add", "fetch_sub", "fetch_and", "fetch_or", "fetch_xor"),
            *("compare_exchange_strong", "compare_exchange_weak"),
        )
    ),
)

# Checks of the plain build; audit/simt/undefined.cc is what they call.
PLAIN_CHECKS = ("-fsanitize=alignment,shift-exponent,float-cast-overflow,integer-divide-by-zero",)

# -O1, as the sanitizers recommend: they cannot check a load that the optimizer removes.
_READABLE = ("-O1", "-g", "-fno-omit-frame-pointer")
# g++ expands memset and most memcpys into moves after it has instrumented accesses. Calls are checked, moves are not.
_CALLED = ("-fno-builtin-memset", "-fno-builtin-memcpy", "-fno-builtin-memmove")
INSTRUMENTATION = {
    "thread": Instrumentation(
        "SIMT_SANITIZER_THREAD",
        (*_READABLE, *_CALLED, "-fsanitize=thread", *(("--param=tsan-distinguish-volatile=1",) if X86 else ())),
        ("-fsanitize=thread", *(f"-Wl,--wrap={name}" for name in _INTERCEPTED if X86)),
        "libtsan.so",
        "",
        "libtsan2",
    ),
    "address": Instrumentation(
        "SIMT_SANITIZER_ADDRESS",
        (
            *_READABLE,
            "-fno-tree-sink",  # a read whose value only some threads use happens in all of them, as written
            "-fsanitize=address,alignment,bounds,null,return,bool,enum,shift-exponent,float-cast-overflow,"
            "integer-divide-by-zero",
            "-fsanitize-recover=all",
        ),
        ("-fsanitize=address,undefined",),
        "libasan.so",
        "sanitizer/asan_interface.h",
        "libasan8",
    ),
    # Instrumented as for threads; audit/simt/definedness.cc implements the callbacks.
    "valgrind": Instrumentation(
        "SIMT_SANITIZER_VALGRIND",
        (*_READABLE, "-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"),
        (),
        "",
        "valgrind/memcheck.h",
        "valgrind",
    ),
}


def find_instrumentation(compiler: Compiler, sanitizer: Sanitizer) -> Instrumentation | None:
    """The instrumentation for a sanitizer; None for a plain build. Raises ToolMissing if the compiler lacks a part."""
    if not sanitizer:
        return None
    wanted = INSTRUMENTATION[sanitizer]
    if "clang" in compiler.version:
        raise ToolMissing(
            f"a host program for `{sanitizer}` needs g++, but CXX or PATH selects {compiler.version}; set CXX=g++"
        )
    missing = [name for name, present in _requirements(compiler, wanted) if not present]
    if missing:
        raise ToolMissing(
            f"a host program for `{sanitizer}` needs {missing[0]}, which {compiler.version} does not find; install it "
            f"(Debian, Ubuntu: `apt-get install {wanted.package}`)"
        )
    return wanted


def _requirements(compiler: Compiler, wanted: Instrumentation) -> list[tuple[str, bool]]:
    """The required library and header, each with whether it is present."""
    requirements = []
    if wanted.library:
        asked = [*compiler.command, f"-print-file-name={wanted.library}"]
        answer = processes.run_process(asked, _ANSWER_LIMIT).output.decode(errors="replace").strip()
        requirements.append((wanted.library, os.path.isabs(answer)))  # the bare name where it is not found
    if wanted.header:
        tried = [*compiler.command, "-E", "-include", wanted.header, "-x", "c++", os.devnull, "-o", os.devnull]
        requirements.append((wanted.header, processes.run_process(tried, _ANSWER_LIMIT).code == 0))
    return requirements
