"""NVIDIA's compute-sanitizer: finds it, queries its version and options, and runs it over bundles.

Defaults have changed between releases, so every option that affects the findings is passed. An option that a release
does not list in its own `--help` is omitted; `ToolRecord.options` lists the ones passed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from audit import processes
from audit.backends import child
from audit.bundle import MANIFEST, Bundle
from audit.compile.cubin_build import CubinBuild
from audit.errors import MachineError, ToolMissing
from audit.records.sanitize import Observation, Tool, ToolFinding, ToolRecord
from audit.sanitize.device import output as compute_output
from audit.sanitize.device import target
from audit.sanitize.verdict import doubts

FOUND = 86
"""The tool's exit status after a finding."""

_NAME = "compute-sanitizer"
_PACKAGE = "nvidia-cuda-sanitizer-api"
_TARGET = "audit.sanitize.device.target"
_LOG, _XML, _CUBIN = "sanitizer.log", "sanitizer.xml", "sanitize.cubin"
_QUERY_LIMIT = 60.0  # seconds
_READ_LIMIT = 64 * 2**20  # bytes of a report; a larger one is read in part, and is not whole
_FLAG = ""  # of an option without a value
_SHARED = "--initcheck-address-space"

_NEEDED = ("--error-exitcode", "--require-cuda-init", "--check-exit-code", "--xml", "--save", "--log-file")
_ALWAYS: Mapping[str, str] = {
    "--error-exitcode": str(FOUND),
    "--require-cuda-init": "yes",
    "--check-exit-code": "yes",
    "--target-processes": "all",
    "--mode": "launch-and-attach",
    "--launch-timeout": "60",  # seconds for the target to connect
    "--print-limit": "0",
    "--print-level": "warn",
    "--prefix": "=========",
    "--strip-paths": "no",
    "--demangle": "full",
    "--language": "c",
    "--show-backtrace": "device",
    "--num-callers-device": "0",
    "--launch-skip": "0",
    "--launch-count": "0",
    "--nvtx": "no",
    "--destroy-on-device-error": "context",
    "--force-synchronization-limit": "0",
    "--num-cuda-barriers": "0",
    "--check-device-heap": "yes",
    "--check-bulk-copy": "yes",
    "--check-tensor-ops": "yes",
    "--check-warpgroup-mma": "yes",
}
_OWN: Mapping[Tool, Mapping[str, str]] = {
    "memcheck": {
        "--leak-check": "no",  # only the target's own buffers could leak
        "--padding": "4096",  # bytes behind each allocation, so that a long stride hits no other
        # The target checks what every call returns, and its query of a parameter past the last one must fail.
        "--report-api-errors": "no",
        "--track-stream-ordered-races": "all",
        "--check-cache-control": _FLAG,
    },
    "racecheck": {
        "--racecheck-report": "all",  # hazards name threads and blocks; their analysis counts for the summary
        "--racecheck-detect-level": "warn",
        "--racecheck-memcpy-async": "yes",
        "--racecheck-fence-proxy-async": "yes",
        "--racecheck-trace-sync": "no",
        "--racecheck-deadlock-timeout": "0",
        "--racecheck-num-workers": "0",
    },
    "synccheck": {"--missing-barrier-init-is-fatal": "yes"},
    "initcheck": {"--check-api-memory-access": "yes", "--unused-memory-threshold": "0", _SHARED: "all"},
}
_GAPS: Mapping[Tool, str] = {
    "memcheck": "it misses an access to the wrong place inside the right allocation, or inside the block's shared "
    "memory",
    "racecheck": "it checks only shared memory within one launch; it misses races in global memory, races between "
    "blocks, and two writes of the same value; to it bar.arrive orders nothing, and an mbarrier only if all lanes "
    "arrive",
    "synccheck": "it misses a barrier that exited threads never reach, and a __syncwarp whose mask names lanes that "
    "never arrive; a barrier that never completes ends at the time limit, without proof",
    "initcheck": "it checks only loads from global memory, not from shared memory or local arrays",
}
_SHARED_TOO = "it checks only loads from global and shared memory, not from local arrays"


class Installation(msgspec.Struct, frozen=True):
    """A working compute-sanitizer: its version, such as `2025.3.1.0`, and the options that its help lists."""

    executable: Path
    version: str
    options: frozenset[str]

    @property
    def sees_shared_initialisation(self) -> bool:
        """Whether initcheck also checks shared memory (2026 and later)."""
        return _SHARED in self.options


class ToolOutput(msgspec.Struct, frozen=True):
    """The output of a run: the tool's log and XML (None if it wrote none), other printed text, and the target's own
    report. A run killed at its limit has the `exit_code` None and its limit as `seconds`."""

    log: str | None
    xml: str | None
    output: str
    report: tuple[str, ...]
    exit_code: int | None
    seconds: float


def find_compute_sanitizer(chosen: Path | None = None) -> Installation:
    """The compute-sanitizer at a path (the program or its folder), on PATH, in a CUDA toolkit, or in PyPI's package.

    Raises ToolMissing if there is none, or if it does not run or lacks an option that a verdict needs.
    """
    tried = []
    for candidate in [chosen / _NAME if chosen.is_dir() else chosen] if chosen else _candidates():
        if candidate.is_file():
            if not os.access(candidate, os.X_OK):
                raise ToolMissing(f"{candidate} is not executable; run `chmod +x {candidate}`")
            return _query(candidate)
        tried.append(str(candidate.parent))
    raise ToolMissing(
        f"no {_NAME} in {', '.join(dict.fromkeys(tried))}; `pip install {_PACKAGE}`, or put a CUDA toolkit's bin on "
        "PATH"
    )


def device_tool_record(tool: Tool, installed: Installation) -> ToolRecord:
    """The tool's version, options and gaps."""
    options = tuple(f"{name} {value}".strip() for name, value in _options(tool, installed).items())
    shared = tool == "initcheck" and installed.sees_shared_initialisation
    return ToolRecord(tool, f"{_NAME} {installed.version}", options, _SHARED_TOO if shared else _GAPS[tool])


class Work(NamedTuple):
    """A bundle of the policy `exact`, written to `folder`, and its cubin with line info."""

    folder: Path
    bundle: Bundle
    build: CubinBuild


def prepare(tool: Tool, installed: Installation, works: Sequence[Work]) -> list[str]:
    """Write the target's files beside each bundle's buffers. Returns the command that runs the tool."""
    folders = [work.folder.resolve() for work in works]
    for folder, (_, bundle, build) in zip(folders, works, strict=True):
        symbols = {entry: build.symbols[entry] for entry in bundle.entries}
        # initcheck would take memory filled with poison as written.
        order = target.TargetOrder(_CUBIN, symbols, poison=tool != "initcheck")
        (folder / MANIFEST).write_bytes(msgspec.json.encode(bundle))
        (folder / target.ORDER).write_bytes(msgspec.json.encode(order))
        (folder / _CUBIN).write_bytes(build.cubin)
    words = [word for option in _options(tool, installed).items() for word in option if word]
    return [
        str(installed.executable),
        "--tool",
        tool,
        *words,
        *("--xml", "--save", str(folders[0] / _XML), "--log-file", str(folders[0] / _LOG)),
        *(sys.executable, "-P", "-m", _TARGET, *map(str, folders)),
    ]


def run_tool(tool: Tool, installed: Installation, work: Work, limit: float) -> Observation:
    """Launch a bundle under a tool, for at most `limit` seconds.

    A kernel that crashes without a report of the tool is a finding of kind `crash`. Raises AuditError if the process
    survives being killed.
    """
    (observed,) = _observe_all(tool, installed, (work,), limit)
    return observed


def run_together(tool: Tool, installed: Installation, works: Sequence[Work], limit: float) -> list[Observation] | None:
    """Like `run`, for several bundles in one process, whose start costs more than their kernels; `limit` is for each.

    None unless all are clean: only separate runs can show which bundle a problem belongs to.
    """
    observations = _observe_all(tool, installed, works, limit * len(works))
    planned = [len(work.bundle.launches) * len(work.bundle.steps) for work in works]
    clean = (
        not observed.findings and not doubts(observed, count)
        for observed, count in zip(observations, planned, strict=True)
    )
    return observations if all(clean) else None


def _observe_all(tool: Tool, installed: Installation, works: Sequence[Work], limit: float) -> list[Observation]:
    command = prepare(tool, installed, works)
    first = works[0].folder
    for work in works:
        for name in (_LOG, _XML, target.REPORT):
            (work.folder / name).unlink(missing_ok=True)
    began = time.monotonic()
    done = processes.run_process(command, limit, env=processes.package_environment())
    seconds = limit if done.code is None else round(time.monotonic() - began, 3)
    log, xml = (_read(first / name) for name in (_LOG, _XML))
    return [
        observe_tool_output(
            tool,
            command,
            [launch.entry for launch in work.bundle.launches],
            tuple(work.build.identity.sources),
            ToolOutput(
                log=log,
                xml=xml,
                output=(done.output + done.errors).decode(errors="replace"),
                report=tuple(child.reported(work.folder / target.REPORT)),
                exit_code=done.code,
                seconds=seconds / len(works),
            ),
        )
        for work in works
    ]


def observe_tool_output(
    tool: Tool, command: Sequence[str], entries: Sequence[str], sources: Sequence[str], output: ToolOutput
) -> Observation:
    """The observation of a run whose plan launches `entries` in every step; `sources` are the project's files."""
    parsed = compute_output.parse_tool_output(tool, output.log or "", output.xml, sources)
    troubles = list(parsed.troubles)
    if output.log is None:
        lines = output.output.strip().splitlines()
        troubles.append(f"no report: {lines[0] if lines else f'exit status {output.exit_code}'}")
    troubles.extend(line for line in output.report if line.startswith("refused "))
    try:
        launches = sum(count.entry in entries for count in child.launches(output.report))
    except ValueError:
        launches = 0
        troubles.append("the target's report has a malformed `launch` line")
    findings = parsed.findings
    if not findings and set(troubles) <= compute_output.CONSEQUENCES:
        findings = tuple(_crash(tool, entries, output))
    return Observation(
        command=tuple(command),
        exit_code=output.exit_code,
        complete=parsed.complete,
        reported=parsed.reported,
        findings=findings,
        troubles=tuple(troubles),
        launches=launches,
        seconds=output.seconds,
    )


def _crash(tool: Tool, entries: Sequence[str], output: ToolOutput) -> Iterator[ToolFinding]:
    """The finding of a crashed kernel, from the target's own report; none for a kernel that was still running."""
    steps = [at for at, line in enumerate(output.report) if line.startswith("step ")]
    if output.exit_code is None or output.report[-1:] == ("done",) or not steps:
        return
    done = sum(line.startswith("launch ") for line in output.report[steps[-1] :])
    kernel = entries[min(done, len(entries) - 1)]
    reported = next((line.removeprefix("error ") for line in output.report if line.startswith("error ")), "")
    if reported.startswith("room ") or output.exit_code == child.NO_ROOM:
        raise MachineError(f"{reported.removeprefix('room ') or 'no room to write'}; nothing was judged. Free space")
    message = reported or f"the process ended with {output.exit_code}"
    yield ToolFinding(tool, "crash", "error", kernel, message, (), 1, "\n".join(output.report))


def _options(tool: Tool, installed: Installation) -> dict[str, str]:
    return {name: value for name, value in {**_ALWAYS, **_OWN[tool]}.items() if name in installed.options}


def _read(path: Path) -> str | None:
    if not path.exists():
        return None
    with path.open("rb") as file:
        return file.read(_READ_LIMIT).decode(errors="replace")


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which(_NAME):
        yield Path(on_path)
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for home in (*homes, "/usr/local/cuda"):
        yield Path(home) / "bin" / _NAME
    spec = importlib.util.find_spec("nvidia")
    for folder in map(Path, (spec.submodule_search_locations or []) if spec else []):
        for package in sorted(folder.glob("cu*"), reverse=True):
            yield package / "bin" / _NAME
            yield package / _NAME / _NAME


def _query(executable: Path) -> Installation:
    answers = []
    for question in ("--version", "--help"):
        try:
            result = subprocess.run(
                [executable, question], capture_output=True, text=True, check=False, timeout=_QUERY_LIMIT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolMissing(f"{executable} {question} failed: {error}; reinstall it") from None
        answers.append(result.stdout)
    version = re.search(r"^Version (\S+)", answers[0], re.MULTILINE)
    options = frozenset(re.findall(r"^ +(?:-\w \[ )?(--[a-z0-9-]+)", answers[1], re.MULTILINE))
    if missing := [name for name in _NEEDED if name not in options]:
        raise ToolMissing(f"{executable} does not know {missing[0]}, which every verdict needs; install a newer one")
    return Installation(executable, version[1] if version else "of unknown version", options)
