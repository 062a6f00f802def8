"""One case on its way to its verdicts: inputs, references, then each variant through a bundle and the checks."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from audit import arena, bundle
from audit.arena import Snapshot
from audit.backends import Completed, Crashed, Outcome, host
from audit.build.frozen import load_frozen
from audit.build.host import HostBuild, build_host
from audit.build.identity import BuildIdentity
from audit.bundle import AGAIN, FIRST, Arm, Bundle
from audit.capture.store import Capture, CaptureStore
from audit.checks import CHECKS, Result, Step, View, worst
from audit.errors import AuditError, CompileError, InputError, ProjectError
from audit.evidence.schema import Audit, CaseRecord
from audit.metrics import metrics
from audit.plan import Plan, PlannedVariant
from audit.project import Project
from audit.revision import project_at
from audit.spec import Array, Binary, Case, Inputs, Operator, Variant
from audit.vacuity import Exposure, OmissionShare, expose, omission_share

T = TypeVar("T")
_SHARED_MEMORY = "/dev/shm"


class CaseOutcome(msgspec.Struct, frozen=True):
    """What one case gives to the evidence."""

    record: CaseRecord
    audits: tuple[Audit, ...]
    builds: dict[str, BuildIdentity]
    exposures: tuple[Exposure, ...]


@dataclass(frozen=True)
class Prepared:
    """A case before any variant runs: its inputs in each step, and what the references make of them."""

    operator: Operator
    case: Case
    inputs: Inputs
    steps: Mapping[str, Inputs]
    references: Mapping[str, Mapping[str, Mapping[str, Array]]]  # step -> reference -> arrays


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
        view = _execute(project, plan, planned, prepared, views[planned.parent] if planned.parent else None, threads)
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


def _execute(
    project: Project, plan: Plan, planned: PlannedVariant, prepared: Prepared, parent: View | None, threads: int
) -> View:
    """Run a variant through all steps, then the first step again: another schedule, other poison, other addresses."""
    if planned.revision:
        project = project_at(project, planned.revision)
    variant = project.operators[plan.operator].variant(planned.name)
    written, outcome, build, steps, final_inputs = _arm(project, plan, variant, prepared, FIRST, threads)
    again: Sequence[Step] = ()
    if isinstance(outcome, Completed):
        _, outcome_again, _, again, _ = _arm(project, plan, variant, prepared, AGAIN, threads)
        if not isinstance(outcome_again, Completed):
            outcome = outcome_again  # what ends only under another schedule has not ended well
    identity = build.identity if build else None
    return View(
        operator=prepared.operator,
        variant=variant,
        case=prepared.case,
        bundle=written,
        build=identity,
        outcome=outcome,
        steps=steps,
        again=again,
        final_inputs=final_inputs,
        parent=parent,
        revision=planned.revision,
    )


def _arm(
    project: Project, plan: Plan, variant: Variant, prepared: Prepared, arm: Arm, threads: int
) -> tuple[Bundle, Outcome, HostBuild | None, Sequence[Step], Mapping[str, Snapshot]]:
    loads = _loads(prepared.inputs, prepared.steps)
    if arm is AGAIN:
        first = next(iter(loads))
        loads = {first: loads[first]}
    with tempfile.TemporaryDirectory(prefix="kernel-audit-", dir=_memory(prepared)) as scratch:
        folder = Path(scratch)
        written = bundle.write(folder, prepared.operator, variant, prepared.case, prepared.inputs, loads, arm)
        outcome, build = _build_and_run(project, plan, variant, folder, written, threads)
        steps: list[Step] = []
        final_inputs: dict[str, Snapshot] = {}
        if isinstance(outcome, Completed):
            for step in written.steps:
                files = outcome.files[step.name]
                snapshots = {name: arena.read(path, written.slot(name)) for name, path in files.items()}
                given, expected = prepared.steps[step.name], prepared.references[step.name]
                steps.append(Step(step.name, given, snapshots, step.poison, expected))
            inputs = [slot for slot in written.slots if slot.role == "in"]
            final_inputs = {slot.name: arena.read(folder / slot.file, slot) for slot in inputs}
    return written, outcome, build, steps, final_inputs


def _memory(prepared: Prepared) -> str | None:
    """A folder in memory, where it has room for the bundle several times over; else the usual one."""
    size = sum(buffer.nbytes(prepared.case) for buffer in prepared.operator.buffers(prepared.case))
    needed = size * (len(prepared.steps) + 2) * 2 * (os.cpu_count() or 1) + 2**30
    try:
        return _SHARED_MEMORY if shutil.disk_usage(_SHARED_MEMORY).free > needed else None
    except OSError:
        return None


def _loads(inputs: Inputs, step_inputs: Mapping[str, Inputs]) -> dict[str, Inputs]:
    """What each step must load: every array that any step changes, as it is in this one."""
    changing = {
        name for given in step_inputs.values() for name, value in given.items() if value is not inputs.get(name)
    }
    return {step: {name: given[name] for name in changing} for step, given in step_inputs.items()}


def _build_and_run(
    project: Project, plan: Plan, variant: Variant, folder: Path, written: Bundle, threads: int
) -> tuple[Outcome, HostBuild | None]:
    code = variant.code
    try:
        if isinstance(code, Binary):
            build = load_frozen(project.root, code.path, written.entries)
        else:
            source = project.root / code.path
            build = build_host(project.root, source, written.entries, arch=plan.arch, defines=code.defines)
    except CompileError as error:
        return Crashed("compile", str(error), 0.0), None
    return host.run(folder, written, build, plan.time_limit, threads), build


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
