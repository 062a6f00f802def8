"""The four tools on this CPU: one bundle, run by a program built for the tool, and what was said about it.

| tool | by | sees |
| --- | --- | --- |
| racecheck | ThreadSanitizer, a fiber for each CUDA thread | shared and global memory, threads, warps and blocks |
| memcheck | AddressSanitizer and UBSan | every buffer and shared object apart, misaligned vectors |
| synccheck | the barrier accounting of `audit/simt` | where threads wait for one another in vain |
| initcheck | valgrind's memcheck, asked at every load | shared memory, outputs and workspaces that nobody wrote |

A program for a tool is a process of its own; its CUDA threads run on one OS thread.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from audit.backends import Outcome, host
from audit.bundle import Bundle
from audit.compile.compiler import find_compiler
from audit.compile.host import HostBuild, build_host
from audit.compile.instrumentation import Sanitizer, find_instrumentation
from audit.errors import ToolMissing
from audit.processes import Excerpt
from audit.records.sanitize import Tool, ToolRecord
from audit.sanitize.canaries import planted

BUILT_FOR: Mapping[Tool, Sanitizer] = {
    "racecheck": "thread",
    "memcheck": "address",
    "synccheck": "",
    "initcheck": "valgrind",
}
FOUND = 66
"""The exit status of a program whose sanitizer found something."""

_LOG_LIMIT = 16 * 2**20  # bytes; a log that is cut is not understood, and its run inconclusive
_LOG, _XML = "sanitizer.log", "sanitizer.xml"
_RED_ZONE = 512  # bytes beside each allocation
_THREAD = {
    "halt_on_error": 0,
    "report_thread_leaks": 0,  # fibers are kept until the end
    "detect_deadlocks": 0,
    "report_signal_unsafe": 0,
    "history_size": 4,  # of 7: how far back the other side of a race keeps its line
}
_ADDRESS = {"halt_on_error": 0, "detect_leaks": 0, "redzone": _RED_ZONE, "max_redzone": 2048, "handle_segv": 2}
_UNDEFINED = {"halt_on_error": 0, "print_stacktrace": 1}


class HostRun(msgspec.Struct, frozen=True):
    """One tool over one bundle. `log` is all that the sanitizer wrote, `report` the program's own lines."""

    tool: Tool
    command: tuple[str, ...]
    outcome: Outcome
    log: str
    report: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Whether every launch of every step ran to its end, findings or not."""
        return self.report[-1:] == ("done",)


def run(tool: Tool, folder: Path, bundle: Bundle, build: HostBuild, limit: float) -> HostRun:
    """Run a bundle of the policy `exact` under a tool, for at most `limit` seconds.

    `build` must be made for BUILT_FOR[tool]: ValueError otherwise. Raises ToolMissing where valgrind is not there.
    """
    if build.sanitizer != BUILT_FOR[tool]:
        raise ValueError(
            f"{tool}: expected a program built for {BUILT_FOR[tool]!r}, but got one for {build.sanitizer!r}"
        )
    log, xml = folder / _LOG, folder / _XML
    for left in (log, xml):
        left.unlink(missing_ok=True)
    under, settings = _surroundings(tool, xml)
    os.mkfifo(log)  # a kernel prints there too, and shall take no room on a disk
    kept_open = os.open(log, os.O_RDWR)  # so that the reader finds no end before the program begins
    written = Excerpt(log.open("rb", buffering=0), first=_LOG_LIMIT)
    try:
        outcome = host.run(folder, bundle, build, limit, 1, under=under, env={**os.environ, **settings}, errors=_LOG)
    finally:
        os.close(kept_open)
        content = written.content()
    said = content.decode(errors="replace") + (xml.read_text(errors="replace") if xml.exists() else "")
    shown = (*(f"{name}={value}" for name, value in settings.items()), *under, str(build.executable))
    return HostRun(tool, shown, outcome, said, tuple(host.reported(folder)))


def build_canaries(tool: Tool, arch: str = "sm_90") -> HostBuild:
    """One program with all canaries of a tool and their twins."""
    kernels = planted.canaries_of(tool)
    entries = [name for kernel in kernels for name in (kernel.name, kernel.twin)]
    folder = planted.FOLDER
    return build_host(folder, folder / kernels[0].source, entries, arch=arch, sanitizer=BUILT_FOR[tool])


_GAPS: Mapping[Tool, str] = {
    "racecheck": "of each 8 bytes it remembers four accesses; beyond 2,048 threads that write in one launch it may "
    "miss a pair; a fence orders whatever its thread does later; of a race long past the other side may lack its line",
    "memcheck": "an access that jumps over the red zone into another buffer is none to it, nor one to the wrong place "
    "inside its own buffer; of a shared object aligned to 8 bytes a misaligned float2 is not seen",
    "synccheck": "it sees the paths that these inputs take, and no others; that threads meet at one __syncthreads from "
    "different places in the code, which CUDA does not allow, it does not see",
    "initcheck": "an uninitialised local that is merely stored, and what a memcpy takes along, is found where the "
    "result is saved, without its line",
}


def record(tool: Tool) -> ToolRecord:
    """The tool as it is used. Raises ToolMissing where it is not there."""
    compiler = find_compiler()
    find_instrumentation(compiler, BUILT_FOR[tool])
    under, settings = _surroundings(tool, Path(_XML))
    options = (*(f"{name}={value}" for name, value in settings.items()), *under[1:])
    by = {
        "racecheck": f"ThreadSanitizer, {compiler.version}",
        "memcheck": f"AddressSanitizer and UBSan, {compiler.version}",
        "synccheck": "the accounting of barriers of audit/simt",
        "initcheck": f"{_version(under[0])}, asked at every load" if tool == "initcheck" else "",
    }[tool]
    return ToolRecord(tool, by, options, _GAPS[tool])


@cache
def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()


def _surroundings(tool: Tool, xml: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command that the program runs under, and the settings of its sanitizer."""
    common = {"exitcode": FOUND}
    match tool:
        case "racecheck":
            return _without_randomisation(), {"TSAN_OPTIONS": _options({**common, **_THREAD})}
        case "memcheck":
            settings = {
                "ASAN_OPTIONS": _options({**common, **_ADDRESS}),
                "UBSAN_OPTIONS": _options({**common, **_UNDEFINED}),
            }
            return (), settings
        case "initcheck":
            valgrind = shutil.which("valgrind")
            if valgrind is None:
                raise ToolMissing("initcheck on this CPU needs valgrind (Debian, Ubuntu: `apt-get install valgrind`)")
            flags = (
                "--tool=memcheck",
                "--quiet",
                f"--error-exitcode={FOUND}",
                "--show-leak-kinds=none",
                "--errors-for-leak-kinds=none",
                "--error-limit=no",
                "--num-callers=16",
                "--vex-guest-max-insns=20",  # of 60: a block of tensor_core.cc is too much for its translator
                f"--redzone-size={_RED_ZONE}",
                "--xml=yes",
                f"--xml-file={xml}",
            )
            return (valgrind, *flags), {}
        case "synccheck":
            return (), {}


def _options(settings: Mapping[str, object]) -> str:
    return ":".join(f"{name}={value}" for name, value in settings.items())


@cache
def _without_randomisation() -> tuple[str, ...]:
    """ThreadSanitizer stops at some random layouts of memory; not where a container forbids to switch that off."""
    setarch = shutil.which("setarch")
    if setarch is None:
        return ()
    command = (setarch, os.uname().machine, "--addr-no-randomize")
    allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if allowed else ()
