"""The four tools on this CPU. A program built for a tool runs one bundle.

| tool | by | finds |
| --- | --- | --- |
| racecheck | ThreadSanitizer, a fiber for each CUDA thread | races in shared and global memory |
| memcheck | AddressSanitizer and UBSan | accesses outside a buffer or shared object, misaligned vectors |
| synccheck | the barrier accounting of `audit/simt` | barriers that some threads never reach |
| initcheck | valgrind's memcheck, queried at every load | reads of memory that nobody wrote |

Each run is a separate process, whose CUDA threads share one OS thread.
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
"""A program's exit status after a finding of its sanitizer."""

_LOG_LIMIT = 16 * 2**20  # bytes; a log that is cut is not understood, and its run inconclusive
_LOG, _XML = "sanitizer.log", "sanitizer.xml"
_RED_ZONE = 512  # bytes beside each allocation
_THREAD = {
    "halt_on_error": 0,
    "report_thread_leaks": 0,  # fibers are kept until the end
    "detect_deadlocks": 0,
    "report_signal_unsafe": 0,
    "history_size": 4,  # 0 to 7: how long the earlier side of a race keeps its line
}
_ADDRESS = {"halt_on_error": 0, "detect_leaks": 0, "redzone": _RED_ZONE, "max_redzone": 2048, "handle_segv": 2}
_UNDEFINED = {"halt_on_error": 0, "print_stacktrace": 1}


class HostRun(msgspec.Struct, frozen=True):
    """One tool's run over one bundle. `log` is the sanitizer's output, `report` the program's own lines."""

    tool: Tool
    command: tuple[str, ...]
    outcome: Outcome
    log: str
    report: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Whether every launch of every step completed, with or without findings."""
        return self.report[-1:] == ("done",)


def run_host_tool(tool: Tool, folder: Path, bundle: Bundle, build: HostBuild, limit: float) -> HostRun:
    """Run a bundle of the policy `exact` under a tool, for at most `limit` seconds.

    Raises ValueError unless `build` is for BUILT_FOR[tool], ToolMissing if valgrind is not installed.
    """
    if build.sanitizer != BUILT_FOR[tool]:
        raise ValueError(
            f"{tool}: expected a program built for {BUILT_FOR[tool]!r}, but got one for {build.sanitizer!r}"
        )
    log, xml = folder / _LOG, folder / _XML
    for left in (log, xml):
        left.unlink(missing_ok=True)
    under, settings = _launcher(tool, xml)
    os.mkfifo(log)  # a kernel prints there too, and shall take no room on a disk
    kept_open = os.open(log, os.O_RDWR)  # so that the reader finds no end before the program begins
    written = Excerpt(log.open("rb", buffering=0), first=_LOG_LIMIT)
    try:
        outcome = host.run(folder, bundle, build, limit, 1, under=under, env={**os.environ, **settings}, errors=_LOG)
    finally:
        os.close(kept_open)
        content = written.content()
    printed = content.decode(errors="replace") + (xml.read_text(errors="replace") if xml.exists() else "")
    shown = (*(f"{name}={value}" for name, value in settings.items()), *under, str(build.executable))
    return HostRun(tool, shown, outcome, printed, tuple(host.host_report(folder)))


def build_canaries(tool: Tool, arch: str = "sm_90") -> HostBuild:
    """Build one program with all canaries of a tool and their twins."""
    kernels = planted.canaries_of(tool)
    entries = [name for kernel in kernels for name in (kernel.name, kernel.twin)]
    folder = planted.FOLDER
    return build_host(folder, folder / kernels[0].source, entries, arch=arch, sanitizer=BUILT_FOR[tool])


_GAPS: Mapping[Tool, str] = {
    "racecheck": "it remembers four accesses to each 8 bytes; it may miss a pair if more than 2,048 threads write in "
    "one launch; several writes of one equal value are a note, not a race; it takes a fence to order everything "
    "that its thread does later; the earlier side of an old race may lack its line",
    "memcheck": "it misses an access that skips the red zone into another buffer, an access to the wrong place inside "
    "the right buffer, and a misaligned float2 in a shared object aligned to 8 bytes",
    "synccheck": "it checks only the paths that these inputs take; it misses threads that meet at one __syncthreads "
    "from different lines of the code, which CUDA forbids",
    "initcheck": "it reports an uninitialised local that is only stored, or copied by memcpy, where the result is "
    "saved, without its line",
}


def host_tool_record(tool: Tool) -> ToolRecord:
    """The tool's version, options and gaps. Raises ToolMissing if it is not installed."""
    compiler = find_compiler()
    find_instrumentation(compiler, BUILT_FOR[tool])
    under, settings = _launcher(tool, Path(_XML))
    options = (*(f"{name}={value}" for name, value in settings.items()), *under[1:])
    by = {
        "racecheck": f"ThreadSanitizer, {compiler.version}",
        "memcheck": f"AddressSanitizer and UBSan, {compiler.version}",
        "synccheck": "the barrier accounting of audit/simt",
        "initcheck": f"{_version(under[0])}, queried at every load" if tool == "initcheck" else "",
    }[tool]
    return ToolRecord(tool, by, options, _GAPS[tool])


@cache
def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()


def _launcher(tool: Tool, xml: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command that runs the program, and its sanitizer's environment variables."""
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
                raise ToolMissing("initcheck on a CPU needs valgrind (Debian, Ubuntu: `apt-get install valgrind`)")
            flags = (
                "--tool=memcheck",
                "--quiet",
                f"--error-exitcode={FOUND}",
                "--show-leak-kinds=none",
                "--errors-for-leak-kinds=none",
                "--error-limit=no",
                "--num-callers=16",
                "--vex-guest-max-insns=20",  # of 60: a code block of tensor_core.cc is too large for its translator
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
    """The command that disables address randomisation, since ThreadSanitizer rejects some random layouts. Empty if a
    container forbids it."""
    setarch = shutil.which("setarch")
    if setarch is None:
        return ()
    command = (setarch, os.uname().machine, "--addr-no-randomize")
    allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if allowed else ()
