"""One variant in one case, executed: its arms, each a bundle given to a backend, become the view that checks see.

On the host a variant runs through all steps, and the first step once more in an arm of its own: another schedule of
threads, other poison, other addresses. On a GPU the first arm runs plainly and as one captured graph, and once more on
the host, whose bytes must be the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from audit import arena, bundle
from audit.arena import Snapshot
from audit.backends import Completed, Crashed, Outcome, cuda, host
from audit.backends.cuda import BOTH, PLAIN
from audit.backends.replay import Mode
from audit.bundle import AGAIN, FIRST, Arm, Bundle
from audit.checks.view import Step, View
from audit.compile.cuda import CubinBuild, compile_cubin
from audit.compile.frozen import load_frozen
from audit.compile.host import HostBuild, build_host
from audit.declaration import buffers_of
from audit.errors import CompileError, PlanError
from audit.plan import Plan, PlannedVariant
from audit.project import Project
from audit.revision import project_at
from audit.spec import Array, Binary, Case, Inputs, Operator, Variant

Modes: TypeAlias = tuple[Mode, ...] | None
HOST = None  # no mode of a replay: executed by the host backend
_SHARED_MEMORY = "/dev/shm"
_turns: dict[object, threading.Lock] = {}  # one a cubin: cases that need the same one wait for the first to build it


@dataclass(frozen=True)
class CaseInputs:
    """A case before any variant runs: its inputs in each step, and what the references make of them."""

    operator: Operator
    case: Case
    inputs: Inputs
    steps: Mapping[str, Inputs]
    references: Mapping[str, Mapping[str, Mapping[str, Array]]]  # step -> reference -> arrays


@dataclass(frozen=True)
class ArmExecution:
    """One execution of all steps of an arm."""

    outcome: Completed
    steps: Sequence[Step]


@dataclass(frozen=True)
class ArmOutcome:
    """One arm that was executed: what each of its modes left, or the outcome that ended it early."""

    bundle: Bundle
    build: HostBuild | CubinBuild | None
    done: Sequence[ArmExecution] = ()
    ended: Outcome | None = None
    final_inputs: Mapping[str, Snapshot] = field(default_factory=dict)


def execute(
    project: Project, plan: Plan, planned: PlannedVariant, prepared: CaseInputs, parent: View | None, threads: int
) -> View:
    """Execute every arm of a variant; the first that does not complete ends it and gives the view its outcome."""
    if planned.revision:
        project = project_at(project, planned.revision)
    variant = project.operators[plan.operator].variant(planned.name)
    arms: list[tuple[Arm, Modes]] = [(FIRST, HOST), (AGAIN, HOST)]
    executions = ["first", "again"]
    if plan.backend == "cuda":
        arms = [(FIRST, BOTH), (AGAIN, PLAIN), (FIRST, HOST)]
        executions = ["first", "graph", "again", "host"]
    ran: list[ArmOutcome] = []
    for arm, modes in arms:
        ran.append(_arm(project, plan, variant, prepared, arm, modes, threads))
        if ran[-1].ended:
            break
    done = dict(zip(executions, (one for arm in ran for one in arm.done), strict=False))
    steps = {name: one.steps for name, one in done.items()}
    builds = [one.build.identity if one.build else None for one in ran]
    return View(
        operator=prepared.operator,
        variant=variant,
        case=prepared.case,
        bundle=ran[0].bundle,
        build=builds[0],
        outcome=ran[-1].ended or done["first"].outcome,
        steps=steps.get("first", ()),
        again=steps.get("again", ()),
        graph=steps.get("graph", ()),
        on_host=steps.get("host", ()),
        launched={name: one.outcome.launches for name, one in done.items() if name != "first"},
        host_build=builds[-1] if "host" in done else None,
        final_inputs=ran[0].final_inputs,
        parent=parent,
        revision=planned.revision,
    )


def _arm(
    project: Project, plan: Plan, variant: Variant, prepared: CaseInputs, arm: Arm, modes: Modes, threads: int
) -> ArmOutcome:
    loads = step_loads(prepared.inputs, prepared.steps)
    if arm is AGAIN:
        first = next(iter(loads))
        loads = {first: loads[first]}
    with tempfile.TemporaryDirectory(prefix="kernel-audit-", dir=_memory(prepared)) as scratch:
        folder = Path(scratch)
        written = bundle.write(folder, prepared.operator, variant, prepared.case, prepared.inputs, loads, arm)
        outcomes, build = _build_and_run(project, plan, variant, folder, written, modes, threads)
        done = []
        for outcome in outcomes:
            if not isinstance(outcome, Completed):
                return ArmOutcome(written, build, ended=outcome)
            done.append(ArmExecution(outcome, _steps(written, outcome, prepared)))
        inputs = [slot for slot in written.slots if slot.role == "in"]
        return ArmOutcome(
            written, build, done, None, {slot.name: arena.read(folder / slot.file, slot) for slot in inputs}
        )


def _steps(written: Bundle, outcome: Completed, prepared: CaseInputs) -> list[Step]:
    steps = []
    for step in written.steps:
        files = outcome.files[step.name]
        snapshots = {name: arena.read(path, written.slot(name)) for name, path in files.items()}
        given, expected = prepared.steps[step.name], prepared.references[step.name]
        steps.append(Step(step.name, given, snapshots, step.poison, expected))
    return steps


def _build_and_run(
    project: Project, plan: Plan, variant: Variant, folder: Path, written: Bundle, modes: Modes, threads: int
) -> tuple[Sequence[Outcome], HostBuild | CubinBuild | None]:
    """One outcome for each mode, or the one that ended all."""
    code, limit = variant.code, plan.time_limit
    try:
        if isinstance(code, Binary):
            if modes is not HOST:
                raise PlanError(f"variant {variant.name}: a frozen host program cannot run on a GPU; leave it out")
            frozen = load_frozen(project.root, code.path, written.entries)
            return [host.run(folder, written, frozen, limit, threads)], frozen
        source = project.root / code.path
        if modes is HOST:
            program = build_host(project.root, source, written.entries, arch=plan.arch, defines=code.defines)
            return [host.run(folder, written, program, limit, threads)], program
        cubin = _cubin(project.root, source, written.entries, plan.arch, tuple(code.defines.items()))
        return cuda.run(folder, written, cubin, limit, modes), cubin
    except CompileError as error:
        return [Crashed("compile", str(error), 0.0)], None


def _cubin(
    root: Path, source: Path, entries: tuple[str, ...], arch: str, defines: tuple[tuple[str, str], ...]
) -> CubinBuild:
    with _turns.setdefault((root, source, entries, arch, defines), threading.Lock()):
        return _compiled(root, source, entries, arch, defines)


@lru_cache(maxsize=64)
def _compiled(
    root: Path, source: Path, entries: tuple[str, ...], arch: str, defines: tuple[tuple[str, str], ...]
) -> CubinBuild:
    return compile_cubin(root, source, entries, arch=arch, defines=dict(defines))


def step_loads(inputs: Inputs, step_inputs: Mapping[str, Inputs]) -> dict[str, Inputs]:
    """What each step must load: every array that any step changes, as it is in this one."""
    changing = {
        name for given in step_inputs.values() for name, value in given.items() if value is not inputs.get(name)
    }
    return {step: {name: given[name] for name in changing} for step, given in step_inputs.items()}


def _memory(prepared: CaseInputs) -> str | None:
    """A folder in memory, where it has room for the bundle several times over; else the usual one."""
    size = sum(buffer.nbytes(prepared.case) for buffer in buffers_of(prepared.operator, prepared.case))
    needed = size * (2 * len(prepared.steps) + 3) * 2 * (os.cpu_count() or 1) + 2**30
    try:
        return _SHARED_MEMORY if shutil.disk_usage(_SHARED_MEMORY).free > needed else None
    except OSError:
        return None
