"""Executes one variant in one case. Each arm is a bundle for a backend; together the arms become the checks' view.

On the host a variant runs all steps, then the first step again in a second arm with another schedule of threads, other
poison and other addresses, and with it every step that left an element which equals its poison. On a GPU the first arm
runs as plain launches and as one captured graph. It also runs on the host, where the host can build it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from audit import arena, bundle
from audit.arena import Snapshot
from audit.backends import Completed, Crashed, Outcome, Unsupported, cuda, host
from audit.backends.cuda import BOTH, PLAIN
from audit.backends.outcome import ending
from audit.backends.replay import Mode
from audit.bundle import AGAIN, FIRST, Arm, Bundle
from audit.checks.conditioning import Moved
from audit.checks.view import NearbyReferences, Step, View
from audit.checks.workspace import steps_to_repeat
from audit.compile.cubin_build import CubinBuild
from audit.compile.device import build_device
from audit.compile.frozen import load_frozen
from audit.compile.host import TARGETS, HostBuild, build_host
from audit.compile.ptx_build import build_ptx
from audit.compile.source_words import nvcc_words
from audit.declaration import buffers_of
from audit.errors import CompileError, ToolMissing
from audit.plan import Plan, PlannedVariant
from audit.project import Project
from audit.revision import project_at
from audit.scratch import SHARED_MEMORY, scratch_folder
from audit.spec import Array, Binary, Case, Inputs, Machine, Operator, Variant

Modes: TypeAlias = tuple[Mode, ...] | None
HOST = None  # no mode of a replay: executed by the host backend


@dataclass(frozen=True)
class CaseInputs:
    """A case before any variant runs: its inputs in each step, and the results of the references."""

    operator: Operator
    case: Case
    inputs: Inputs
    steps: Mapping[str, Inputs]
    references: Mapping[str, Mapping[str, Mapping[str, Array]]]  # step -> reference -> arrays
    converted: dict[str, str] = field(default_factory=dict)  # buffer -> how its input was converted
    families: tuple[str, ...] = ()  # the steps that are input families
    left_out: Mapping[str, str] = field(default_factory=dict)  # input family -> why it does not apply
    moved: Mapping[str, Callable[[], Moved | None]] = field(default_factory=dict)  # step -> references, inputs moved
    nearby: Mapping[str, Callable[[], NearbyReferences]] = field(default_factory=dict)  # the same, by a rounding to f32


@dataclass(frozen=True)
class ArmExecution:
    """One execution of all steps of an arm."""

    outcome: Completed
    steps: Sequence[Step]


@dataclass(frozen=True)
class ArmOutcome:
    """The result of one arm: an execution for each mode, or the outcome that ended it early."""

    bundle: Bundle
    build: HostBuild | CubinBuild | None
    executions: Sequence[ArmExecution] = ()
    failure: Outcome | None = None
    final_inputs: Mapping[str, Snapshot] = field(default_factory=dict)


def execute_variant(
    project: Project, plan: Plan, planned: PlannedVariant, prepared: CaseInputs, parent: View | None, threads: int
) -> View:
    """Execute the arms of a variant. The first that does not complete ends the series and is the view's outcome, unless
    it is a host arm for which the operator makes no promise, or which the host cannot build."""
    if planned.revision:
        project = project_at(project, planned.revision)
    variant = project.operators[plan.operator].variant(planned.name)
    on_gpu = plan.backend == "cuda"

    def execute(arm: Arm, modes: Modes, steps: Sequence[str] = ()) -> ArmOutcome:
        return _execute_arm(project, plan, variant, prepared, arm, modes, threads, steps)

    first = execute(FIRST, BOTH if on_gpu else HOST)
    plain, graph = (*first.executions, None, None)[:2]
    view = View(
        operator=prepared.operator,
        variant=variant,
        case=prepared.case,
        bundle=first.bundle,
        build=first.build.identity if first.build else None,
        outcome=first.failure or first.executions[0].outcome,
        steps=plain.steps if plain else (),
        again=(),
        graph=graph.steps if graph else (),
        launched={"graph": graph.outcome.launches} if graph else {},
        final_inputs=first.final_inputs,
        parent=parent,
        revision=planned.revision,
        baseline_only=planned.baseline_only,
    )
    if first.failure:
        return view
    again = execute(AGAIN, PLAIN if on_gpu else HOST, steps_to_repeat(view))
    view = _with_again(view, again)
    return _with_host(view, execute(FIRST, HOST)) if on_gpu and not again.failure else view


def _with_again(view: View, again: ArmOutcome) -> View:
    if again.failure:
        return replace(view, outcome=again.failure)
    (execution,) = again.executions
    return replace(view, again=execution.steps, launched={**view.launched, "again": execution.outcome.launches})


def _with_host(view: View, host: ArmOutcome) -> View:
    """The view with the host arm of a run on a GPU, or with the reason why there is none."""
    if not host.failure:
        (execution,) = host.executions
        launched = {**view.launched, "host": execution.outcome.launches}
        build = host.build.identity if host.build else None
        return replace(view, on_host=execution.steps, launched=launched, host_build=build)
    if view.operator.same_on_host and not isinstance(host.failure, Unsupported):
        return replace(view, outcome=host.failure)
    return replace(view, host_reason=ending(host.failure))


def _execute_arm(
    project: Project,
    plan: Plan,
    variant: Variant,
    prepared: CaseInputs,
    arm: Arm,
    modes: Modes,
    threads: int,
    names: Sequence[str] = (),
) -> ArmOutcome:
    """Run the steps of an arm, or only those of the given names."""
    loads = step_loads(prepared.inputs, prepared.steps)
    loads = {name: loads[name] for name in names or loads}
    with scratch_folder(_memory(prepared)) as folder:
        manifest = bundle.write_bundle(folder, prepared.operator, variant, prepared.case, prepared.inputs, loads, arm)
        longer = len(prepared.steps) / max(1, len(prepared.steps) - len(prepared.families))
        outcomes, build = _build_and_run(project, plan, variant, folder, manifest, modes, threads, longer)
        executions = []
        for outcome in outcomes:
            if not isinstance(outcome, Completed):
                return ArmOutcome(manifest, build, failure=outcome)
            executions.append(ArmExecution(outcome, _steps(manifest, outcome, prepared)))
        inputs = [slot for slot in manifest.slots if slot.role == "in"]
        return ArmOutcome(
            manifest, build, executions, None, {slot.name: arena.read_slot(folder / slot.file, slot) for slot in inputs}
        )


def _steps(manifest: Bundle, outcome: Completed, prepared: CaseInputs) -> list[Step]:
    steps = []
    for step in manifest.steps:
        files = outcome.files[step.name]
        snapshots = {name: arena.read_slot(path, manifest.slot(name)) for name, path in files.items()}
        inputs, expected = prepared.steps[step.name], prepared.references[step.name]
        family = step.name if step.name in prepared.families else ""
        further = (prepared.moved.get(step.name), prepared.nearby.get(step.name))
        steps.append(Step(step.name, inputs, snapshots, step.poison, expected, family, *further))
    return steps


def _build_and_run(
    project: Project,
    plan: Plan,
    variant: Variant,
    folder: Path,
    manifest: Bundle,
    modes: Modes,
    threads: int,
    longer: float,
) -> tuple[Sequence[Outcome], HostBuild | CubinBuild | None]:
    """One outcome for each mode, or the single outcome that ended them all."""
    code, limit = variant.code, plan.time_limit * longer
    try:
        if modes is not HOST:
            cubin = build_device(project.root, variant, manifest.entries, plan.arch)
            return cuda.run(folder, manifest, cubin, limit, modes), cubin
        if plan.backend == "cuda" and plan.arch not in TARGETS:
            raise CompileError(f"the CPU has no model of the tensor cores of {plan.arch}")
        if isinstance(code, Machine):
            program = build_ptx(project.root, code, manifest.entries, arch=plan.arch)
        elif isinstance(code, Binary):
            program = load_frozen(project.root, code.path, manifest.entries)
        else:
            source = project.root / code.path
            program = build_host(
                project.root,
                source,
                manifest.entries,
                arch=plan.arch,
                defines=code.defines,
                words=nvcc_words(code),
                also=code.also,
                constants=manifest.constants,
            )
        return [host.run(folder, manifest, program, limit, threads)], program
    except CompileError as error:  # a CUDA compiler's is the source's; this CPU's may be what the CPU lacks
        return [Unsupported(str(error)) if modes is HOST else Crashed("compile", str(error), 0.0)], None
    except ToolMissing as error:
        if modes is HOST and plan.backend == "cuda":  # the GPU has run: what the CPU lacks only leaves out a comparison
            return [Unsupported(str(error))], None
        raise


def step_loads(inputs: Inputs, step_inputs: Mapping[str, Inputs]) -> dict[str, Inputs]:
    """The arrays that each step loads: every input that any step changes, with this step's values."""
    changing = {
        name for arrays in step_inputs.values() for name, value in arrays.items() if value is not inputs.get(name)
    }
    return {step: {name: arrays[name] for name in changing} for step, arrays in step_inputs.items()}


def _memory(prepared: CaseInputs) -> str | None:
    """A folder in memory if it holds the bundle several times over; otherwise None, the default folder."""
    size = sum(buffer.nbytes(prepared.case) for buffer in buffers_of(prepared.operator, prepared.case))
    needed = size * (2 * len(prepared.steps) + 3) * 2 * (os.cpu_count() or 1) + 2**30
    try:
        return SHARED_MEMORY if shutil.disk_usage(SHARED_MEMORY).free > needed else None
    except OSError:
        return None
