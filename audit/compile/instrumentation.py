"""What a host program is compiled with for each sanitizer, and whether this machine has it."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from audit import processes
from audit.compile.compiler import X86, Compiler
from audit.errors import ToolMissing

_ANSWER_LIMIT = 60.0  # seconds, for a question about the compiler

Sanitizer = Literal["", "thread", "address", "valgrind"]
"""What a host program is instrumented for; `valgrind` is memcheck asked at every load of a kernel."""


class Instrumentation(msgspec.Struct, frozen=True):
    """How a host program is made ready for a sanitizer; the runtime gets the macro alone."""

    macro: str
    kernel: tuple[str, ...]
    link: tuple[str, ...]
    library: str  # without which nothing is linked
    header: str  # that the runtime includes
    package: str  # of Debian and Ubuntu


# Functions that write, or print: audit/simt/scout.cc looks at each call first.
_WRITERS = (
    *(f"__tsan_write{size}" for size in (1, 2, 4, 8, 16)),
    *(f"__tsan_unaligned_write{size}" for size in (2, 4, 8, 16)),
    *("__tsan_write_range", "memset", "memcpy", "memmove", "printf", "puts", "putchar"),
)

# -O1 as the sanitizers advise: a load that the optimizer drops is not checked.
_READABLE = ("-O1", "-g", "-fno-omit-frame-pointer")
# g++ turns a memset, and most memcpys, into moves after it has looked for accesses: calls are seen, moves are not.
_CALLED = ("-fno-builtin-memset", "-fno-builtin-memcpy", "-fno-builtin-memmove")
INSTRUMENTATION = {
    "thread": Instrumentation(
        "SIMT_SANITIZER_THREAD",
        (*_READABLE, *_CALLED, "-fsanitize=thread"),
        ("-fsanitize=thread", *(f"-Wl,--wrap={name}" for name in _WRITERS if X86)),
        "libtsan.so",
        "",
        "libtsan2",
    ),
    "address": Instrumentation(
        "SIMT_SANITIZER_ADDRESS",
        (
            *_READABLE,
            "-fsanitize=address,alignment,bounds,null,return,bool,enum,shift-exponent,integer-divide-by-zero",
            "-fsanitize-recover=all",
        ),
        ("-fsanitize=address,undefined",),
        "libasan.so",
        "sanitizer/asan_interface.h",
        "libasan8",
    ),
    # Instrumented as for threads; audit/simt/definedness.cc takes the calls.
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
    """None for a plain build. Raises ToolMissing where the compiler lacks what the sanitizer needs."""
    if not sanitizer:
        return None
    wanted = INSTRUMENTATION[sanitizer]
    if "clang" in compiler.version:
        raise ToolMissing(f"a host program for `{sanitizer}` needs g++; CXX or PATH gives {compiler.version}")
    missing = [name for name, found in _needs(compiler, wanted) if not found]
    if missing:
        raise ToolMissing(
            f"a host program for `{sanitizer}` needs {missing[0]}, which {compiler.version} does not find; install it "
            f"(Debian, Ubuntu: `apt-get install {wanted.package}`)"
        )
    return wanted


def _needs(compiler: Compiler, wanted: Instrumentation) -> list[tuple[str, bool]]:
    """The library and the header that are needed, each with whether it is there."""
    needs = []
    if wanted.library:
        asked = [*compiler.command, f"-print-file-name={wanted.library}"]
        answer = processes.run(asked, _ANSWER_LIMIT).output.decode(errors="replace").strip()
        needs.append((wanted.library, os.path.isabs(answer)))  # the bare name where it is not found
    if wanted.header:
        tried = [*compiler.command, "-E", "-include", wanted.header, "-x", "c++", os.devnull, "-o", os.devnull]
        needs.append((wanted.header, processes.run(tried, _ANSWER_LIMIT).code == 0))
    return needs
