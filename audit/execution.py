"""One variant in one case, executed: its arms, each a bundle given to a backend, become the view that checks see.

On the host a variant runs through all steps, and the first step once more in an arm of its own: another schedule of
threads, other poison, other addresses. On a GPU it also runs as one captured graph, and on the host, whose
bytes must be the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from audit import arena, bundle
from audit.arena import Snapshot
from audit.backends import Completed, Crashed, Outcome, cuda, host
from audit.build.cuda import CubinBuild, compile_cubin
from audit.build.frozen import load_frozen
from audit.build.host import HostBuild, build_host
from audit.bundle import AGAIN, FIRST, Arm, Bundle
from audit.checks.view import Step, View
from audit.errors import CompileError, PlanError
from audit.plan import Plan, PlannedVariant
from audit.project import Project
from audit.revision import project_at
from audit.spec import Array, Binary, Case, Inputs, Operator, Variant

Mode = Literal["host", "plain", "graph"]
_SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Prepared:
    """A case before any variant runs: its inputs in each step, and what the references make of them."""

    operator: Operator
    case: Case
    inputs: Inputs
    steps: Mapping[str, Inputs]
    references: Mapping[str, Mapping[str, Mapping[str, Array]]]  # step -> reference -> arrays


@dataclass(frozen=True)
class Ran:
    """One arm that was executed; `steps` and `final_inputs` are empty unless it completed."""

    bundle: Bundle
    outcome: Outcome
    build: HostBuild | CubinBuild | None
    steps: Sequence[Step] = ()
    final_inputs: Mapping[str, Snapshot] | None = None


def execute(
    project: Project, plan: Plan, planned: PlannedVariant, prepared: Prepared, parent: View | None, threads: int
) -> View:
    """Execute every arm of a variant; the first that does not complete ends it and gives the view its outcome."""
    if planned.revision:
        project = project_at(project, planned.revision)
    variant = project.operators[plan.operator].variant(planned.name)
    usual: Mode = "plain" if plan.backend == "cuda" else "host"
    wanted: list[tuple[Arm, Mode]] = [(FIRST, usual), (AGAIN, usual)]
    if plan.backend == "cuda":
        wanted += [(FIRST, "graph"), (FIRST, "host")]
    ran: list[Ran] = []
    for arm, mode in wanted:
        ran.append(_arm(project, plan, variant, prepared, arm, mode, threads))
        if not isinstance(ran[-1].outcome, Completed):
            break
    first = ran[0]
    by_arm = [one.steps for one in ran] + [()] * (4 - len(ran))
    return View(
        operator=prepared.operator,
        variant=variant,
        case=prepared.case,
        bundle=first.bundle,
        build=first.build.identity if first.build else None,
        outcome=first.outcome if isinstance(ran[-1].outcome, Completed) else ran[-1].outcome,
        steps=by_arm[0],
        again=by_arm[1],
        graph=by_arm[2],
        on_host=by_arm[3],
        final_inputs=first.final_inputs or {},
        parent=parent,
        revision=planned.revision,
    )


def _arm(project: Project, plan: Plan, variant: Variant, prepared: Prepared, arm: Arm, mode: Mode, threads: int) -> Ran:
    loads = _loads(prepared.inputs, prepared.steps)
    if arm is AGAIN:
        first = next(iter(loads))
        loads = {first: loads[first]}
    with tempfile.TemporaryDirectory(prefix="kernel-audit-", dir=_memory(prepared)) as scratch:
        folder = Path(scratch)
        written = bundle.write(folder, prepared.operator, variant, prepared.case, prepared.inputs, loads, arm)
        outcome, build = _build_and_run(project, plan, variant, folder, written, mode, threads)
        if not isinstance(outcome, Completed):
            return Ran(written, outcome, build)
        steps = []
        for step in written.steps:
            files = outcome.files[step.name]
            snapshots = {name: arena.read(path, written.slot(name)) for name, path in files.items()}
            given, expected = prepared.steps[step.name], prepared.references[step.name]
            steps.append(Step(step.name, given, snapshots, step.poison, expected))
        inputs = [slot for slot in written.slots if slot.role == "in"]
        return Ran(written, outcome, build, steps, {slot.name: arena.read(folder / slot.file, slot) for slot in inputs})


def _build_and_run(
    project: Project, plan: Plan, variant: Variant, folder: Path, written: Bundle, mode: Mode, threads: int
) -> tuple[Outcome, HostBuild | CubinBuild | None]:
    code, limit = variant.code, plan.time_limit
    try:
        if isinstance(code, Binary):
            if mode != "host":
                raise PlanError(f"variant {variant.name}: a frozen host program cannot run on a GPU; leave it out")
            frozen = load_frozen(project.root, code.path, written.entries)
            return host.run(folder, written, frozen, limit, threads), frozen
        source = project.root / code.path
        if mode == "host":
            program = build_host(project.root, source, written.entries, arch=plan.arch, defines=code.defines)
            return host.run(folder, written, program, limit, threads), program
        cubin = _cubin(project.root, source, written.entries, plan.arch, tuple(code.defines.items()))
        return cuda.run(folder, written, cubin, limit, mode), cubin
    except CompileError as error:
        return Crashed("compile", str(error), 0.0), None


@lru_cache(maxsize=64)
def _cubin(
    root: Path, source: Path, entries: tuple[str, ...], arch: str, defines: tuple[tuple[str, str], ...]
) -> CubinBuild:
    return compile_cubin(root, source, entries, arch=arch, defines=dict(defines))


def _loads(inputs: Inputs, step_inputs: Mapping[str, Inputs]) -> dict[str, Inputs]:
    """What each step must load: every array that any step changes, as it is in this one."""
    changing = {
        name for given in step_inputs.values() for name, value in given.items() if value is not inputs.get(name)
    }
    return {step: {name: given[name] for name in changing} for step, given in step_inputs.items()}


def _memory(prepared: Prepared) -> str | None:
    """A folder in memory, where it has room for the bundle several times over; else the usual one."""
    size = sum(buffer.nbytes(prepared.case) for buffer in prepared.operator.buffers(prepared.case))
    needed = size * (len(prepared.steps) + 2) * 2 * (os.cpu_count() or 1) + 2**30
    try:
        return _SHARED_MEMORY if shutil.disk_usage(_SHARED_MEMORY).free > needed else None
    except OSError:
        return None
