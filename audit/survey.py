"""Runs every shape of a project, several at a time, each by a command of its own, and keeps one record of all."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from audit import __version__, processes
from audit.checks.result import Verdict, worst
from audit.compile.identity import BuildIdentity, sha256_of_file
from audit.plan import Backend
from audit.project import Project
from audit.records import machine
from audit.records.folder import add_pages
from audit.records.run import KIND as RUN
from audit.records.run import RunRecord
from audit.records.sanitize import KIND as SANITIZE
from audit.records.sanitize import Canary, SanitizeRecord, Tool
from audit.records.survey import (
    SCHEMA,
    Objection,
    SurveyedShape,
    SurveyedVariant,
    SurveyRecord,
    draft,
    summarize_survey,
)
from audit.report import pages
from audit.sanitize.engine import Engine
from audit.sanitize.plan import make_sanitize_plan
from audit.sanitize.session import sanitize
from audit.scratch import scratch_folder

_DETAIL, _NOTES = 300, 4
_TOOL_LIMIT = 180.0  # seconds, for a sanitizer over one variant in one case


class SurveyOrder(msgspec.Struct, frozen=True):
    """What to survey: the project's shapes, on which backend, with sanitizers or without, how many at a time."""

    project: Project
    shapes: tuple[str, ...]
    backend: Backend
    engine: Engine | None  # of the sanitizers; None runs none
    jobs: int
    time_limit: float  # seconds, for the command of one shape
    device: str | None  # as the record describes it
    command: str


class OneSession:
    """An engine whose tools find their canaries once: all shapes of a survey are one session."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._found, self._lock = engine, dict[Tool, tuple[Canary, ...]](), threading.Lock()
        self.together = engine.together
        self.record, self.observe = engine.record, engine.observe
        self.describe_device, self.abort = engine.describe_device, engine.abort

    def canaries(self, tool: Tool) -> tuple[Canary, ...]:
        """The tool's canaries and their twins, run for the first shape that asks."""
        with self._lock:
            if tool not in self._found:
                self._found[tool] = self._engine.canaries(tool)
            return self._found[tool]


class _Surveyed(msgspec.Struct, frozen=True):
    """One shape with what its records name."""

    shape: SurveyedShape
    builds: dict[str, BuildIdentity] = {}
    files: dict[str, str] = {}


def survey(order: SurveyOrder, runs: Path, on_shape: Callable[[SurveyedShape], None]) -> tuple[SurveyRecord, Path]:
    """Run all shapes and write the record into a new folder of `runs`. Returns the record and that folder."""
    folder = draft(runs, order.project.root.name)
    began = time.monotonic()
    with scratch_folder() as scratch, ThreadPoolExecutor(order.jobs) as pool:

        def one(shape: str) -> _Surveyed:
            found = _survey_shape(order, shape, scratch / shape)
            on_shape(found.shape)
            return found

        surveyed = list(pool.map(one, order.shapes))
    below = _relative(order.project.root)
    shapes = tuple(one.shape for one in surveyed)
    record = SurveyRecord(
        schema=SCHEMA,
        kind="survey",
        tool=__version__,
        started=folder.started,
        command=order.command,
        commit=machine.commit(order.project.root),
        project=below or ".",
        backend=order.backend,
        planned=order.shapes,
        machine=machine.describe_machine(order.device),
        shapes=shapes,
        builds={key: _moved(build, below) for one in surveyed for key, build in one.builds.items()},
        files={_below(below, name): digest for one in surveyed for name, digest in sorted(one.files.items())},
        summary=summarize_survey(order.shapes, shapes, round(time.monotonic() - began, 1)),
    )
    path = folder.finish(record)
    add_pages(path, lambda: pages(record))
    return record, path


def _survey_shape(order: SurveyOrder, shape: str, scratch: Path) -> _Surveyed:
    began = time.monotonic()
    refusal = _run_command(order, shape, scratch / "run")
    homes = [home for home in (scratch / "run").glob("*") if not home.name.startswith(".")]
    if not homes:
        seconds = round(time.monotonic() - began, 1)
        return _Surveyed(SurveyedShape(shape, "inconclusive", seconds, 0, (), {}, (), refusal or "it left no record"))
    digests = [sha256_of_file(homes[0] / RUN.file)]
    session = None
    if order.engine:
        plan = make_sanitize_plan(order.project, shape, backend=order.backend, time_limit=_TOOL_LIMIT)
        session, home = sanitize(
            order.project, plan, order.engine, scratch / "sanitize", order.command, lambda _record: {}
        )
        digests.append(sha256_of_file(home / SANITIZE.file))
    return _summarized(shape, round(time.monotonic() - began, 1), RUN.load(homes[0]), session, tuple(digests))


def _summarized(
    shape: str, seconds: float, run: RunRecord, session: SanitizeRecord | None, digests: tuple[str, ...]
) -> _Surveyed:
    variants = tuple(_variant(run, session, planned.label) for planned in run.plan.variants)
    tools: dict[str, Verdict] = {}
    if session:
        for tool in session.plan.tools:
            tools[tool] = worst([one.verdict for one in session.checked if one.tool == tool])
    verdicts = [variant.verdict for variant in variants]
    if run.summary.vacuous or run.summary.indistinguishable:
        verdicts.append("inconclusive")
        gaps = (*run.summary.vacuous, *run.summary.indistinguishable)
        objection = Objection("plan", "inconclusive", f"cannot tell apart: {', '.join(gaps)}"[:_DETAIL])
        first = variants[0]
        verdict = worst([first.verdict, "inconclusive"])
        changed = msgspec.structs.replace(first, verdict=verdict, objections=(*first.objections, objection))
        variants = (changed, *variants[1:])
    sanitized = session.builds if session else {}
    builds = {f"{shape}/{key}": build for key, build in (*run.builds.items(), *sanitized.items())}
    files = {name: digest for build in builds.values() for name, digest in build.sources.items()}
    if run.closure:
        files |= run.closure.python
    found = SurveyedShape(
        shape,
        worst([*(variant.verdict for variant in variants), *tools.values()]),
        seconds,
        len(run.cases),
        variants,
        tools,
        digests,
    )
    return _Surveyed(found, builds, files)


def _variant(run: RunRecord, session: SanitizeRecord | None, label: str) -> SurveyedVariant:
    planned = next(one for one in run.plan.variants if one.label == label)
    audits = [audit for audit in run.audits if audit.variant == label]
    objections: dict[str, Objection] = {}
    for audit in audits:
        for result in audit.results:
            if result.verdict != "pass":
                objections.setdefault(result.check, Objection(result.check, result.verdict, result.detail[:_DETAIL]))
    for one in session.checked if session else ():
        if one.variant == label and one.verdict != "pass":
            detail = next((finding.message for finding in one.findings if not finding.suppressed), one.reason)
            objections.setdefault(one.tool, Objection(one.tool, one.verdict, detail[:_DETAIL]))
    notes = tuple(dict.fromkeys(note.detail for audit in audits for note in audit.notes))
    verdicts: list[Verdict] = [audit.verdict for audit in audits]
    if session:
        verdicts += [one.verdict for one in session.checked if one.variant == label]
    return SurveyedVariant(label, planned.parent or "", worst(verdicts), tuple(objections.values()), notes[:_NOTES])


def _run_command(order: SurveyOrder, shape: str, out: Path) -> str:
    """Run `audit run` on a shape; its message where it ended with a usage error or not at all."""
    words = ["run", "--shape", shape, "--out", str(out), "--project", str(order.project.root)]
    command = [sys.executable, "-m", "audit", *words, "--device", order.backend]
    done = processes.run_process(command, order.time_limit, env=processes.package_environment())
    if done.code is None:
        return f"`audit run` did not end within {order.time_limit:g} s"
    text = done.errors.decode(errors="replace").strip().splitlines()
    return (text[-1] if text else f"`audit run` ended with {done.code}")[: 2 * _DETAIL]


def _relative(root: Path) -> str:
    here = Path.cwd().resolve()
    return os.path.relpath(root, here) if root.is_relative_to(here) and root != here else ""


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _moved(build: BuildIdentity, folder: str) -> BuildIdentity:
    """A build with the paths of its sources below a folder."""
    sources = {_below(folder, name): digest for name, digest in build.sources.items()}
    return msgspec.structs.replace(build, source=_below(folder, build.source), sources=sources)
