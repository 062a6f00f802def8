"""Runs a plan: an executor takes every case, then one record holds all results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from pathlib import Path

import msgspec

from audit import __version__
from audit.argument_pairs import indistinguishable
from audit.backends import child, cuda
from audit.case import CaseOutcome, audit_case
from audit.checks import Result, worst
from audit.copies import without_copies
from audit.plan import Plan
from audit.project import Project
from audit.records import machine
from audit.records.closure import closure_of
from audit.records.folder import add_pages
from audit.records.run import SCHEMA, Audit, RunRecord, arguments_of, draft, run_cases, summarize_run
from audit.report import pages
from audit.scratch import sweep
from audit.spec import Operator


def run(
    project: Project,
    plan: Plan,
    runs: Path,
    command: str,
    *,
    on_audit: Callable[[Audit], None] = lambda _: None,
    executor: Executor | None = None,
) -> tuple[RunRecord, Path]:
    """Execute a plan and write its record into a new folder of `runs`. Returns the record and that folder.

    The plan is on disk before anything runs. An error that the user can fix (AuditError) ends the run and leaves only
    the partial folder.
    """
    sweep()
    folder = draft(runs, plan)
    began = time.monotonic()
    outcomes = _all_cases(project, plan, on_audit, executor)
    builds = {key: build for outcome in outcomes for key, build in outcome.builds.items()}
    audits = without_copies(plan, [audit for outcome in outcomes for audit in outcome.audits], builds)
    if not plan.pruned:
        audits = _with_unmeasured_bounds(project.operators[plan.operator], audits)
    cases = tuple(outcome.record for outcome in outcomes)
    pairs = () if plan.pruned else indistinguishable(arguments_of(cases))  # a narrowed plan makes no claim about them
    exposures = tuple(exposure for outcome in outcomes for exposure in outcome.exposures)
    record = RunRecord(
        schema=SCHEMA,
        tool=__version__,
        started=folder.started,
        command=command,
        commit=machine.commit(project.root),
        plan=plan,
        machine=machine.describe_machine(cuda.require_device().described() if plan.backend == "cuda" else None),
        builds=builds,
        cases=cases,
        audits=audits,
        exposures=exposures,
        summary=summarize_run(plan, audits, exposures, round(time.monotonic() - began, 2), pairs),
        closure=closure_of(
            project,
            plan.operator,
            [outcome.reads for outcome in outcomes],
            run_cases(plan),
        ),
    )
    path = folder.finish(record)
    add_pages(path, lambda: pages(record, project=project))
    return record, path


def _with_unmeasured_bounds(operator: Operator, audits: tuple[Audit, ...]) -> tuple[Audit, ...]:
    """The audits of a default plan; one of them names each bound that applied to none of its cases."""
    measured = {result.check for audit in audits for result in audit.results}
    ended = [audit for audit in audits if any(result.check == "workspace" for result in audit.results)]
    unmeasured = [bound.name for bound in operator.bounds if f"error:{bound.name}" not in measured]
    if not ended or not unmeasured:
        return audits
    detail = "the bound applied to no step of any case of the plan"
    added = tuple(Result(f"error:{name}", "inconclusive", detail) for name in unmeasured)
    results = ended[0].results + added
    marked = msgspec.structs.replace(ended[0], results=results, verdict=worst([result.verdict for result in results]))
    return tuple(marked if audit is ended[0] else audit for audit in audits)


def _all_cases(
    project: Project, plan: Plan, on_audit: Callable[[Audit], None], executor: Executor | None
) -> list[CaseOutcome]:
    cores = os.cpu_count() or 1
    pool = executor or ThreadPoolExecutor(min(cores, len(plan.cases)))
    # More threads a case would oversubscribe the cores while several cases run.
    threads = max(1, cores // min(cores, len(plan.cases)))
    try:
        futures = [
            pool.submit(audit_case, project, plan, case, threads=threads, on_audit=on_audit)
            for case in sorted(plan.cases, key=_weight, reverse=True)
        ]
        for future in as_completed(futures):
            future.result()  # the first error ends the run
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        child.abort()
        raise
    finally:
        cuda.release()
    if executor is None:
        pool.shutdown()
    by_case = {future.result().record.case.id: future.result() for future in futures}
    return [by_case[case.id] for case in plan.cases]


def _weight(case: object) -> float:
    """The product of a case's integer axes. The heaviest case starts first, so that none runs alone at the end."""
    product = 1.0
    for value in getattr(case, "axes", {}).values():
        if isinstance(value, int):
            product *= max(1, value)
    return product
