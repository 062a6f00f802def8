"""NVIDIA's compute-sanitizer: found, asked what it is, and run over bundles.

Defaults have changed between releases, so every option that decides what is seen is passed. An option that a release
does not list in its own `--help` is left out; `ToolRecord.options` tells which were passed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from audit.backends import child, cuda
from audit.bundle import MANIFEST, Bundle
from audit.compile.cuda import CubinBuild
from audit.errors import AuditError, ToolMissing
from audit.records.sanitize import Observation, Tool, ToolFinding, ToolRecord
from audit.sanitize.device import output as compute_output
from audit.sanitize.device import target
from audit.sanitize.verdict import doubts

FOUND = 86
"""The exit status of a tool that found something."""

_NAME = "compute-sanitizer"
_PACKAGE = "nvidia-cuda-sanitizer-api"
_TARGET = "audit.sanitize.device.target"
_LOG, _XML, _OUTPUT, _CUBIN = "sanitizer.log", "sanitizer.xml", "sanitizer.output", "sanitize.cubin"
_ASKING_LIMIT, _DEATH_LIMIT = 60.0, 60.0  # seconds
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
        "--leak-check": "no",  # the target's own buffers are all that could leak
        "--padding": "4096",  # bytes behind each allocation, so that a long stride meets no other
        # The target looks at what every call returns; one of its questions, about the last parameter, must fail.
        "--report-api-errors": "no",
        "--track-stream-ordered-races": "all",
        "--check-cache-control": _FLAG,
    },
    "racecheck": {
        "--racecheck-report": "all",  # hazards for the threads and blocks, their analysis for the summary
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
    "memcheck": "an access to the wrong place inside its own allocation, or inside its block's shared memory, is none",
    "racecheck": "it sees shared memory alone, inside one launch: no race in global memory, none between blocks, and "
    "not two writes of the same value; bar.arrive orders nothing for it, an mbarrier only if all lanes arrive",
    "synccheck": "a barrier that threads miss because they have ended is no error to it, nor is a __syncwarp whose "
    "mask names lanes that never come; a barrier that waits for ever ends at the time limit, without proof",
    "initcheck": "it sees global memory alone, as loads read it: neither shared memory nor local arrays",
}
_SHARED_TOO = "it sees global and shared memory as loads read it, and no local arrays"


class Installation(msgspec.Struct, frozen=True):
    """A compute-sanitizer that answers: its version as `2025.3.1.0`, and the options that its help lists."""

    executable: Path
    version: str
    options: frozenset[str]

    @property
    def sees_shared_initialisation(self) -> bool:
        """Whether initcheck looks at shared memory too (2026 and later)."""
        return _SHARED in self.options


class ToolOutput(msgspec.Struct, frozen=True):
    """What a run left: the tool's log and XML (None where it wrote none), whatever else was printed, and the target's
    own report. `exit_code` is None for a run that was killed at its limit, which are then its `seconds`."""

    log: str | None
    xml: str | None
    output: str
    report: tuple[str, ...]
    exit_code: int | None
    seconds: float


def find_compute_sanitizer(chosen: Path | None = None) -> Installation:
    """The compute-sanitizer of a path (the program or its folder), of PATH, of a CUDA toolkit, or of PyPI's package.

    Raises ToolMissing where there is none, or where it does not answer or lacks what a verdict needs.
    """
    tried = []
    for place in [chosen / _NAME if chosen.is_dir() else chosen] if chosen else _places():
        if place.is_file():
            if not os.access(place, os.X_OK):
                raise ToolMissing(f"{place} is not executable; run `chmod +x {place}`")
            return _asked(place)
        tried.append(str(place.parent))
    raise ToolMissing(
        f"no {_NAME} in {', '.join(dict.fromkeys(tried))}; `pip install {_PACKAGE}`, or put a CUDA toolkit's bin on "
        "PATH"
    )


def record(tool: Tool, installed: Installation) -> ToolRecord:
    """The tool as it is used."""
    options = tuple(f"{name} {value}".strip() for name, value in _options(tool, installed).items())
    shared = tool == "initcheck" and installed.sees_shared_initialisation
    return ToolRecord(tool, f"{_NAME} {installed.version}", options, _SHARED_TOO if shared else _GAPS[tool])


class Work(NamedTuple):
    """A bundle of the policy `exact`, written to `folder`, and its cubin, which has line info for findings' lines."""

    folder: Path
    bundle: Bundle
    build: CubinBuild


def prepare(tool: Tool, installed: Installation, works: Sequence[Work]) -> list[str]:
    """Write what the target needs beside each bundle's buffers; the command that runs it under the tool."""
    folders = [work.folder.resolve() for work in works]
    for folder, (_, bundle, build) in zip(folders, works, strict=True):
        symbols = {entry: build.symbols[entry] for entry in bundle.entries}
        # For initcheck memory that was filled with poison would be memory that somebody wrote.
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


def run(tool: Tool, installed: Installation, work: Work, limit: float) -> Observation:
    """Launch a bundle under a tool, for at most `limit` seconds.

    A kernel that crashes with no word of the tool about it is a finding too, `crash`. Raises AuditError where the
    process cannot be killed.
    """
    (seen,) = _observed(tool, installed, (work,), limit)
    return seen


def run_together(tool: Tool, installed: Installation, works: Sequence[Work], limit: float) -> list[Observation] | None:
    """As `run`, of several bundles in one process, whose start costs more than their kernels; `limit` is for each.

    None where anything at all speaks against one of them: whose it is only runs of their own can tell.
    """
    seen = _observed(tool, installed, works, limit * len(works))
    planned = [len(work.bundle.launches) * len(work.bundle.steps) for work in works]
    clean = (not one.findings and not doubts(one, count) for one, count in zip(seen, planned, strict=True))
    return seen if all(clean) else None


def _observed(tool: Tool, installed: Installation, works: Sequence[Work], limit: float) -> list[Observation]:
    command = prepare(tool, installed, works)
    first = works[0].folder
    for work in works:
        for name in (_LOG, _XML, _OUTPUT, target.REPORT):
            (work.folder / name).unlink(missing_ok=True)
    began = time.monotonic()
    exit_code = _watched(command, first / _OUTPUT, limit)
    seconds = limit if exit_code is None else round(time.monotonic() - began, 3)
    log, xml, output = (_read(first / name) for name in (_LOG, _XML, _OUTPUT))
    return [
        observe(
            tool,
            command,
            [launch.entry for launch in work.bundle.launches],
            tuple(work.build.identity.sources),
            ToolOutput(
                log=log,
                xml=xml,
                output=output or "",
                report=tuple(child.reported(work.folder / target.REPORT)),
                exit_code=exit_code,
                seconds=seconds / len(works),
            ),
        )
        for work in works
    ]


def observe(
    tool: Tool, command: Sequence[str], entries: Sequence[str], sources: Sequence[str], left: ToolOutput
) -> Observation:
    """What a run showed that was to launch `entries` in every step; `sources` are the project's files."""
    told = compute_output.parse(tool, left.log or "", left.xml, sources)
    troubles = list(told.troubles)
    if left.log is None:
        said = left.output.strip().splitlines()
        troubles.append(f"no report: {said[0] if said else f'exit status {left.exit_code}'}")
    troubles.extend(line for line in left.report if line.startswith("refused "))
    try:
        launches = sum(count.entry in entries for count in child.launches(left.report))
    except ValueError:
        launches = 0
        troubles.append("the target's report has a `launch` line that is none")
    findings = told.findings
    if not findings and set(troubles) <= compute_output.CONSEQUENCES:
        findings = tuple(_ended_badly(tool, entries, left))
    return Observation(
        command=tuple(command),
        exit_code=left.exit_code,
        complete=told.complete,
        reported=told.reported,
        findings=findings,
        troubles=tuple(troubles),
        launches=launches,
        seconds=left.seconds,
    )


def abort() -> None:
    """Kill every tool that is running now, with its target."""
    for process in tuple(_running):
        _kill(process)


_running: set[subprocess.Popen[bytes]] = set()


def _watched(command: Sequence[str], output: Path, limit: float) -> int | None:
    """The exit status; None where the limit came first. The whole group is killed when this returns."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=cuda.environment(),
        )
    _running.add(process)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process)
        _running.discard(process)
        try:
            process.wait(_DEATH_LIMIT)
        except subprocess.TimeoutExpired:
            raise AuditError(
                f"process {process.pid} ({_NAME}) still runs {_DEATH_LIMIT:g} s after it was killed; restart the "
                "machine or its GPU before running on"
            ) from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ended_badly(tool: Tool, entries: Sequence[str], left: ToolOutput) -> Iterator[ToolFinding]:
    """What the target's own report tells of a kernel that crashed; one that was still running is none."""
    steps = [at for at, line in enumerate(left.report) if line.startswith("step ")]
    if left.exit_code is None or left.report[-1:] == ("done",) or not steps:
        return
    done = sum(line.startswith("launch ") for line in left.report[steps[-1] :])
    kernel = entries[min(done, len(entries) - 1)]
    said = next((line.removeprefix("error ") for line in left.report if line.startswith("error ")), "")
    message = said or f"the process ended with {left.exit_code}"
    yield ToolFinding(tool, "crash", "error", kernel, message, (), 1, "\n".join(left.report))


def _options(tool: Tool, installed: Installation) -> dict[str, str]:
    return {name: value for name, value in {**_ALWAYS, **_OWN[tool]}.items() if name in installed.options}


def _read(path: Path) -> str | None:
    if not path.exists():
        return None
    with path.open("rb") as file:
        return file.read(_READ_LIMIT).decode(errors="replace")


def _places() -> Iterator[Path]:
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


def _asked(executable: Path) -> Installation:
    answers = []
    for question in ("--version", "--help"):
        try:
            done = subprocess.run(
                [executable, question], capture_output=True, text=True, check=False, timeout=_ASKING_LIMIT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolMissing(f"{executable} {question}: {error}; reinstall it") from None
        answers.append(done.stdout)
    version = re.search(r"^Version (\S+)", answers[0], re.MULTILINE)
    options = frozenset(re.findall(r"^ +(?:-\w \[ )?(--[a-z0-9-]+)", answers[1], re.MULTILINE))
    if missing := [name for name in _NEEDED if name not in options]:
        raise ToolMissing(
            f"{executable} does not know {missing[0]}, without which no run is clean; install a newer one"
        )
    return Installation(executable, version[1] if version else "of unknown version", options)
