"""Audits one case: computes inputs and references, then takes each variant through its bundle and the checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import msgspec

from audit import arena, families
from audit.backends import Completed, Unsupported
from audit.capture.store import Capture
from audit.checks import CHECKS, Result, View, worst
from audit.checks.bytes import zero_notes
from audit.checks.constants import constant_notes
from audit.checks.device import host_notes
from audit.checks.judged import family_notes
from audit.checks.relation import relation_notes
from audit.compile.identity import BuildIdentity
from audit.declaration import ask, launches_of
from audit.execution import CaseInputs, execute_variant
from audit.inputs import load_capture
from audit.launch_record import LaunchRecord, launch_records
from audit.metrics import metrics
from audit.plan import Plan
from audit.prepared import prepared_case, without_families
from audit.printable import one_line
from audit.project import Project
from audit.project_reads import ProjectReads, collected_in_a_case
from audit.records.run import Audit, CaseRecord
from audit.spec import Case, kernels_on_gpu
from audit.vacuity import Exposure, OmissionShare, expose, omission_share


class CaseOutcome(msgspec.Struct, frozen=True):
    """What one case contributes to the record of its run."""

    record: CaseRecord
    audits: tuple[Audit, ...]
    builds: dict[str, BuildIdentity]
    exposures: tuple[Exposure, ...]
    reads: ProjectReads = msgspec.field(default_factory=ProjectReads)


def audit_case(
    project: Project, plan: Plan, case: Case, *, threads: int, on_audit: Callable[[Audit], None] = lambda _: None
) -> CaseOutcome:
    """Audit every planned variant in one case. Raises AuditError only for what the user can fix."""
    with collected_in_a_case() as reads, kernels_on_gpu(plan.backend == "cuda"):
        outcome = _audit(project, plan, case, threads, on_audit)
    return msgspec.structs.replace(outcome, reads=reads)


class _UnsupportedInFamilies(Exception):
    """The backend lacks what a kernel does in a case with input families, perhaps in one of them alone."""


def _audit(project: Project, plan: Plan, case: Case, threads: int, on_audit: Callable[[Audit], None]) -> CaseOutcome:
    """The audits; again without the input families that leave the range, and without any, where the backend cannot run
    a kernel on them: what a CPU lacks says nothing of a kernel."""
    capture = load_capture(project, case)
    prepared = prepared_case(project.operators[plan.operator], case, capture, plan.family_seconds)
    reported: set[str] = set()

    def report_once(audit: Audit) -> None:
        if audit.variant not in reported:
            reported.add(audit.variant)
            on_audit(audit)

    while True:
        try:
            return _audited(project, plan, capture, prepared, threads, report_once)
        except _UnsupportedInFamilies as error:
            left = [name for name in prepared.families if families.outside(name)] or prepared.families
            prepared = without_families(prepared, left, f"not supported here: {one_line(error, 300)}")


def _audited(
    project: Project,
    plan: Plan,
    capture: Capture | None,
    prepared: CaseInputs,
    threads: int,
    on_audit: Callable[[Audit], None],
) -> CaseOutcome:
    operator, case = prepared.operator, prepared.case
    views: dict[str, View] = {}
    audits = []
    builds: dict[str, BuildIdentity] = {}
    exposures: list[Exposure] = []
    launches: dict[str, tuple[LaunchRecord, ...]] = {}
    share: OmissionShare | None = None
    first: View | None = None
    for planned in plan.variants:
        began = time.monotonic()
        view = execute_variant(
            project, plan, planned, prepared, views[planned.parent] if planned.parent else None, threads
        )
        if prepared.families and view.build is not None and isinstance(view.outcome, Unsupported):
            raise _UnsupportedInFamilies(view.outcome.message)
        if first is not None:
            view = replace(view, first=first)
        elif planned.parent is None:
            first = view
        views[planned.label] = view
        launches[planned.label] = launch_records(launches_of(view.variant, view.case), view.bundle.launches)
        results = _check(view)
        build_key = None
        if view.build is not None:
            build_key = f"{planned.label}-{view.build.key[:16]}"
            builds[build_key] = view.build
        if view.host_build is not None:
            builds[f"{planned.label}-host-{view.host_build.key[:16]}"] = view.host_build
        verdict = worst([result.verdict for result in results])
        if planned.parent is None and verdict == "pass" and not exposures and (operator.bounds or operator.probes):
            exposures = list(expose(view))
            share = omission_share(view)
        measured = tuple(metrics(view))
        seconds = round(time.monotonic() - began, 3)
        shared = _dynamic_shared(view)
        audit = Audit(
            case.id,
            planned.label,
            verdict,
            seconds,
            results,
            measured,
            build_key,
            shared,
            (
                *zero_notes(view),
                *constant_notes(view),
                *host_notes(view),
                *relation_notes(view),
                *family_notes(view, results),
            ),
            view.launched_code,
        )
        audits.append(audit)
        on_audit(audit)
    digest = arena.input_digest(prepared.inputs)
    record = CaseRecord(
        case=case,
        inputs_sha256=digest,
        capture_sha256=capture.manifest_sha256 if capture else None,
        steps=tuple(prepared.steps),
        omission_share=share,
        computed_by={
            reference.name: ask(
                case, f"computed_by of {reference.name}", reference.computed_by, prepared.case, returns=str
            )
            for reference in operator.references
            if reference.computed_by
        },
        launches=launches,
        converted=prepared.converted,
        left_out=dict(prepared.left_out),
    )
    return CaseOutcome(record, tuple(audits), builds, tuple(exposures))


def _check(view: View) -> tuple[Result, ...]:
    results: list[Result] = []
    completed = isinstance(view.outcome, Completed)
    for check in CHECKS.values() if completed else (CHECKS["completion"],):  # otherwise there are no results to check
        results.extend(check(view))
    return tuple(results)


def _dynamic_shared(view: View) -> dict[str, int]:
    largest: dict[str, int] = {}
    for launch in view.bundle.launches:
        largest[launch.entry] = max(launch.shared_bytes, largest.get(launch.entry, 0))
    return largest
