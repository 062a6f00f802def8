"""One case on its way to its verdicts: inputs, references, then each variant through a bundle and the checks."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from audit import arena
from audit.backends import Completed
from audit.build.identity import BuildIdentity
from audit.capture.store import Capture, CaptureStore
from audit.checks import CHECKS, Result, View, worst
from audit.errors import AuditError, InputError, ProjectError
from audit.evidence.schema import Audit, CaseRecord
from audit.execution import Prepared, execute
from audit.metrics import metrics
from audit.plan import Plan
from audit.project import Project
from audit.spec import Array, Case, Inputs, Operator
from audit.vacuity import Exposure, OmissionShare, expose, omission_share

T = TypeVar("T")


class CaseOutcome(msgspec.Struct, frozen=True):
    """What one case gives to the evidence."""

    record: CaseRecord
    audits: tuple[Audit, ...]
    builds: dict[str, BuildIdentity]
    exposures: tuple[Exposure, ...]


def audit_case(
    project: Project, plan: Plan, case: Case, *, threads: int, on_audit: Callable[[Audit], None] = lambda _: None
) -> CaseOutcome:
    """Audit every planned variant in one case. Raises AuditError only for what is the user's to mend."""
    operator = project.operators[plan.operator]
    capture = _load(project, case)
    prepared = _prepare(operator, case, capture)
    views: dict[str, View] = {}
    audits = []
    builds: dict[str, BuildIdentity] = {}
    exposures: list[Exposure] = []
    share: OmissionShare | None = None
    for planned in plan.variants:
        began = time.monotonic()
        view = execute(project, plan, planned, prepared, views[planned.parent] if planned.parent else None, threads)
        views[planned.label] = view
        results = _check(view)
        build_key = None
        if view.build is not None:
            build_key = f"{planned.label}-{view.build.key[:16]}"
            builds[build_key] = view.build
        verdict = worst([result.verdict for result in results])
        if planned.parent is None and verdict == "pass" and not exposures:
            exposures = _ask(case, "a mutation", lambda view=view: list(expose(view)))
            share = _ask(case, "omission_share", omission_share, view)
        measured = tuple(_ask(case, "measuring", lambda view=view: list(metrics(view))))
        seconds = round(time.monotonic() - began, 3)
        audit = Audit(case.id, planned.label, verdict, seconds, results, measured, build_key)
        audits.append(audit)
        on_audit(audit)
    digest = arena.input_digest(prepared.inputs)
    record = CaseRecord(
        case=case,
        inputs_sha256=digest,
        capture_sha256=capture.manifest_sha256 if capture else None,
        steps=tuple(prepared.steps),
        omission_share=share,
    )
    return CaseOutcome(record, tuple(audits), builds, tuple(exposures))


def _prepare(operator: Operator, case: Case, capture: Capture | None) -> Prepared:
    inputs = _inputs(operator, case, capture)
    changes = _ask(case, "steps", operator.steps, case, inputs)
    if case.first_step_only:
        changes = dict(list(changes.items())[:1])
    steps = {name: {**inputs, **change} for name, change in changes.items()}
    if operator.admit_inputs:
        for given in steps.values():
            _ask(case, "admit_inputs", operator.admit_inputs, case, given)
    return Prepared(operator, case, inputs, steps, _references(operator, case, steps))


def _load(project: Project, case: Case) -> Capture | None:
    if case.capture is None:
        return None
    if project.captures is None:
        raise ProjectError(f"case {case.id}: needs a capture, but the project's settings name no captures")
    return CaptureStore(project.captures).load(case.capture)


def _inputs(operator: Operator, case: Case, capture: Capture | None) -> Inputs:
    if capture is None:
        make = operator.probe(case.probe).inputs if case.probe else operator.inputs
        return _ask(case, "inputs", make, case, case.rng())
    if operator.from_capture is None:
        raise ProjectError(f"operator {operator.name}: cases with a capture need from_capture")
    return _ask(case, "from_capture", operator.from_capture, case, capture)


def _references(
    operator: Operator, case: Case, step_inputs: Mapping[str, Inputs]
) -> dict[str, dict[str, Mapping[str, Array]]]:
    """step -> reference -> arrays; computed before any variant runs, once for equal inputs."""
    known: dict[str, dict[str, Mapping[str, Array]]] = {}
    by_step = {}
    for name, given in step_inputs.items():
        digest = arena.input_digest(given)
        if digest not in known:
            known[digest] = {
                reference.name: _ask(case, f"reference {reference.name}", reference.compute, case, given)
                for reference in operator.references
            }
        by_step[name] = known[digest]
    return by_step


def _check(view: View) -> tuple[Result, ...]:
    results: list[Result] = []
    ended = isinstance(view.outcome, Completed)
    for check in CHECKS.values() if ended else (CHECKS["completion"],):  # else there is nothing more to look at
        results.extend(_ask(view.case, "a check", lambda check=check: list(check(view))))
    return tuple(results)


def _ask(case: Case, what: str, function: Callable[..., T], *args: object) -> T:
    """Call the project's code; whatever it raises becomes a ProjectError that names the line."""
    try:
        return function(*args)
    except InputError as error:
        raise InputError(f"case {case.id}: {error}") from None
    except AuditError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ProjectError(
            f"case {case.id}: {what} raised {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        ) from error
