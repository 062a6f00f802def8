"""One session: every tool first finds its canaries, then runs over every variant in every case."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec

from audit import __version__, bundle
from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.errors import CompileError, ToolMissing
from audit.execution import step_loads
from audit.inputs import case_inputs, load_capture
from audit.project import Project
from audit.project_reads import collected_in_a_case
from audit.records import machine
from audit.records.closure import closure_of
from audit.records.folder import add_pages
from audit.records.sanitize import (
    SCHEMA,
    Canary,
    Observation,
    SanitizePlan,
    SanitizeRecord,
    Suppression,
    Tool,
    ToolCheck,
    ToolRecord,
    complaints,
    counted,
    draft,
    session_cases,
    summarize_session,
)
from audit.sanitize import suppressions
from audit.sanitize.engine import Engine
from audit.sanitize.verdict import judge_run
from audit.scratch import scratch_folder, sweep
from audit.spec import Case, Inputs

_AT_ONCE = 8


def sanitize(
    project: Project,
    plan: SanitizePlan,
    engine: Engine,
    runs: Path,
    command: str,
    render: Callable[[SanitizeRecord], Mapping[str, bytes]],
    *,
    on_check: Callable[[ToolCheck], None] = lambda _: None,
) -> tuple[SanitizeRecord, Path]:
    """Run a plan and write its record into a new folder of `runs`. Returns the record and that folder.

    The plan is on disk before anything runs. `render` makes the page, and any file beside it, by name. The checks of a
    missing tool are inconclusive.
    """
    sweep()
    rules = suppressions.concerning(project, suppressions.declared(project), plan.operator, plan.backend)
    folder = draft(runs, plan)
    began = time.monotonic()
    records: dict[Tool, ToolRecord] = {}
    missing: dict[Tool, str] = {}
    canaries: list[Canary] = []
    for tool in plan.tools:
        try:
            records[tool] = engine.record(tool)
            canaries += engine.canaries(tool)
        except (ToolMissing, CompileError) as error:
            missing[tool] = str(error)
    session = _Session(project, plan, engine, rules, tuple(canaries), missing)
    with collected_in_a_case() as reads:
        checked, builds = _run_checks(session, on_check)
    used = counted(rules, (finding for check in checked for finding in check.findings))
    objections = complaints(used, _today(), tuple(records), narrowed=plan.pruned)
    record = SanitizeRecord(
        schema=SCHEMA,
        kind="sanitize",
        tool=__version__,
        started=folder.started,
        command=command,
        commit=machine.commit(project.root),
        plan=plan,
        machine=machine.describe_machine(engine.describe_device()),
        tools=tuple(records.values()),
        builds=builds,
        canaries=tuple(canaries),
        checked=checked,
        suppressions=used,
        summary=summarize_session(plan, checked, canaries, objections, round(time.monotonic() - began, 1)),
        closure=closure_of(project, plan.operator, [reads], session_cases(plan)),
    )
    path = folder.finish(record)
    add_pages(path, lambda: render(record))
    return record, path


class _Session(msgspec.Struct, frozen=True):
    project: Project
    plan: SanitizePlan
    engine: Engine
    rules: tuple[Suppression, ...]
    canaries: tuple[Canary, ...]
    missing: dict[Tool, str]


def _run_checks(
    session: _Session, on_check: Callable[[ToolCheck], None]
) -> tuple[tuple[ToolCheck, ...], dict[str, BuildIdentity]]:
    """All planned checks, in the plan's order, and the builds by key."""
    plan = session.plan
    data = {case.id: _case_data(session, case) for case in plan.cases}
    groups = [plan.cases] if session.engine.together else [(case,) for case in plan.cases]
    jobs = [(tool, variant, cases) for tool in plan.tools for variant in plan.variants for cases in groups]
    builds: dict[str, BuildIdentity] = {}
    by_job: dict[int, list[ToolCheck]] = {}
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _AT_ONCE))
    try:
        futures = {
            pool.submit(_check, session, tool, variant, [(case, data[case.id]) for case in cases]): index
            for index, (tool, variant, cases) in enumerate(jobs)
        }
        for future in as_completed(futures):
            by_job[futures[future]] = [checked for checked, _ in future.result()]
            for checked, build in future.result():
                if build is not None and checked.build:
                    builds[checked.build] = build
                on_check(checked)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        session.engine.abort()
        raise
    pool.shutdown()
    return tuple(checked for index in range(len(jobs)) for checked in by_job[index]), builds


class _CaseData(msgspec.Struct, frozen=True):
    inputs: Inputs
    loads: dict[str, Inputs]


def _case_data(session: _Session, case: Case) -> _CaseData:
    operator = session.project.operators[session.plan.operator]
    inputs, steps = case_inputs(operator, case, load_capture(session.project, case))
    return _CaseData(inputs, step_loads(inputs, steps))


def _check(
    session: _Session, tool: Tool, variant_name: str, cases: Sequence[tuple[Case, _CaseData]]
) -> list[tuple[ToolCheck, BuildIdentity | None]]:
    """Run a variant under a tool in some cases; one check for each, in their order."""
    operator = session.project.operators[session.plan.operator]
    variant = operator.variant(variant_name)

    def not_run(verdict: Verdict, reason: str) -> list[tuple[ToolCheck, BuildIdentity | None]]:
        return [
            (ToolCheck(tool, variant_name, case.id, verdict, reason, (), 0, 0, 0.0, None), None) for case, _ in cases
        ]

    if tool in session.missing:
        return not_run("inconclusive", session.missing[tool])
    with scratch_folder() as scratch:
        bundles = []
        for index, (case, data) in enumerate(cases):
            folder = scratch / str(index)
            folder.mkdir()
            manifest = bundle.write_bundle(folder, operator, variant, case, data.inputs, data.loads, policy="exact")
            bundles.append((folder, manifest))
        try:
            limit = session.plan.time_limit
            observations = session.engine.observe(tool, session.project.root, variant, bundles, limit)
        except ToolMissing as error:
            return not_run("inconclusive", str(error))
        except CompileError as error:
            if session.plan.backend == "host":
                return not_run("inconclusive", f"not supported here: {error}")
            return not_run("fail", f"the variant does not compile: {error}")
    return [
        (_judge(session, tool, variant_name, case, observed, len(made.launches) * len(made.steps), build), build)
        for (case, _), (_, made), (observed, build) in zip(cases, bundles, observations, strict=True)
    ]


def _judge(
    session: _Session, tool: Tool, variant: str, case: Case, observed: Observation, planned: int, build: BuildIdentity
) -> ToolCheck:
    findings = suppressions.apply(session.rules, observed.findings, _today())
    observed = msgspec.structs.replace(observed, findings=findings)
    verdict, reason = judge_run(tool, observed, planned, session.canaries)
    key, seconds = f"{tool}-{variant}-{build.key[:16]}", round(observed.seconds, 2)
    return ToolCheck(tool, variant, case.id, verdict, reason, findings, observed.launches, planned, seconds, key)


def _today() -> date:
    return datetime.now(UTC).date()
