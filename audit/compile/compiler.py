"""The C++ compiler of this machine, and whether its CPU can run host programs."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from audit import processes
from audit.compile.rewrite import LEFT_OUT
from audit.errors import CompileError, MachineError, ToolMissing

_CANDIDATES = ("g++", "c++", "clang++")
_NEEDED = ("avx2", "fma", "f16c")
_ERRORS_SHOWN = 5
TIME_LIMIT = 600.0  # seconds, for one call of a compiler
_ANSWER_LIMIT = 60.0  # seconds, for a question about itself
_SHORTAGE = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|Read-only file system|Input/output error"
    r"|[Cc]annot allocate memory|out of memory allocating|(?:virtual )?memory exhausted|Too many open files"
    r"|Resource temporarily unavailable|signal terminated program|terminated with signal|internal compiler error"
)
_MISSING = re.compile(rf"^([^\s:]+:\d+).*warning: (<.+> {LEFT_OUT})", re.MULTILINE)
_INSTALL = "install one (Debian, Ubuntu: `apt-get install g++`; Fedora: `dnf install gcc-c++`) or set CXX"

_COMMON_FLAGS = (
    "-std=c++17",
    "-O2",
    "-g1",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",  # CUDA sources read memory through pointers of other types
    "-fwrapv",  # as on the GPU, so that an overflowing index is wrong here too
    "-pthread",
)
X86 = platform.machine() in ("x86_64", "AMD64")
_X86_FLAGS = ("-mavx2", "-mfma", "-mf16c")


class Compiler(msgspec.Struct, frozen=True):
    """`command` includes fixed arguments. `version` joins path, fixed arguments and the first line of --version."""

    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of every host build. On x86-64 the baseline is AVX2 and FMA, whatever else the machine has."""
        return _COMMON_FLAGS + (_X86_FLAGS if X86 else ())

    def run(self, arguments: Sequence[str | Path], cwd: Path, scratch: Path) -> None:
        """Compile or link, with temporary files in `scratch`.

        Raises CompileError with the compiler's first errors, MachineError where it is not the source that is wrong.
        """
        command = [*self.command, *map(str, arguments)]
        env = {**os.environ, "LC_ALL": "C", "TMPDIR": str(scratch)}
        done = processes.run_process(command, TIME_LIMIT, cwd=cwd, env=env)
        errors = done.errors.decode(errors="replace")
        require_compiler_end(self.command[0], done.code, errors)
        if done.code != 0:
            raise CompileError(first_errors(errors) or f"{shlex.join(command)} ended with {done.code}")


def require_compiler_end(name: str, code: int | None, errors: str) -> None:
    """Raise MachineError where a compiler ended with `code` (None: it was stopped) for no reason of the source's."""
    if code is None:
        raise MachineError(
            f"{name} did not end within {TIME_LIMIT:g} s and was stopped; nothing was judged. Make its source simpler"
        )
    if code < 0:
        raise MachineError(
            f"{name} was killed by {signal.Signals(-code).name}; nothing was judged. Look for too little memory"
        )
    for line in errors.splitlines() if code else ():
        if _SHORTAGE.search(line) and "#error" not in line and not line.startswith(" "):
            raise MachineError(f"{name}: {line}; nothing was judged. Free what is short, or set CXX or TMPDIR")


def find_compiler() -> Compiler:
    """$CXX, or g++, c++ or clang++. Raises ToolMissing if there is none or the CPU lacks AVX2, FMA or F16C."""
    configured = os.environ.get("CXX", "").strip()
    command = shlex.split(configured) if configured else [next(filter(shutil.which, _CANDIDATES), "")]
    path = shutil.which(command[0]) if command[0] else None
    if path is None:
        raise ToolMissing(
            f"CXX={configured}: no such program; {_INSTALL}" if configured else f"no C++ compiler found; {_INSTALL}"
        )
    require_cpu()
    asked = processes.run_process([*command, "--version"], _ANSWER_LIMIT)
    output, errors = asked.output.decode(errors="replace"), asked.errors.decode(errors="replace")
    if asked.code != 0 or not output.strip():
        how = f"did not answer within {_ANSWER_LIMIT:g} s" if asked.code is None else f"ended with {asked.code}"
        raise ToolMissing(f"{path} --version {how}: {errors.strip()[:200]}; {_INSTALL}")
    fixed = "".join(f" {argument}" for argument in command[1:])
    return Compiler(tuple(command), f"{os.path.realpath(path)}{fixed}: {output.splitlines()[0]}")


def require_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Raises ToolMissing if an x86-64 CPU lacks the baseline that host programs are compiled for."""
    if platform.machine() not in ("x86_64", "AMD64") or not cpuinfo.exists():
        return
    match = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    flags = match.group(1).split() if match else []
    missing = [flag for flag in _NEEDED if flag not in flags]
    if missing:
        raise ToolMissing(
            f"this CPU lacks {', '.join(missing)}; host builds need AVX2, FMA and F16C (2013 and later): "
            "run on another machine, or with --device cuda"
        )


def first_errors(text: str) -> str:
    """The first errors, each with the source lines that the compiler prints below it."""
    lines = text.replace("\0", "").splitlines()
    starts = [i for i, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)][:_ERRORS_SHOWN]
    shown: list[str] = []
    for start in starts:
        shown.append(lines[start])
        for line in lines[start + 1 : start + 4]:
            if not re.match(r"\s+\d*\s*\|", line):
                break
            shown.append(line)
    shown = list(dict.fromkeys(shown))
    if "<<<" in text:
        shown.append("(a launch `<<<...>>>` in device code is not supported on the CPU)")
    for header in dict.fromkeys(_MISSING.findall(text)):
        shown.append(f"({': '.join(header)})")
    return "\n".join(shown or lines[:20])
