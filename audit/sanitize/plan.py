"""The plan of a session of sanitizers, made before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from audit.capture.store import CaptureStore
from audit.errors import PlanError
from audit.plan import Backend, captured_axes, cases_having, checked_time_limit, planned_variants
from audit.project import Project
from audit.records.sanitize import TOOLS, SanitizePlan, Tool
from audit.spec import AxisValue, Case, Line, Operator, Shape


def make_sanitize_plan(
    project: Project,
    shape_name: str,
    *,
    tools: Sequence[Tool] = (),
    variants: Sequence[str] = (),
    cases: Sequence[str] = (),
    axes: Mapping[str, Sequence[AxisValue]] = {},
    seeds: Sequence[int] = (),
    backend: Backend = "host",
    time_limit: float,
) -> SanitizePlan:
    """The plan. Empty selections mean all tools, all variants that are not closed, and all declared cases.

    `cases` are parts of case names. Axis values and seeds select as those of `audit run` do: they narrow the declared
    cases, add one where none has the values, and drop captures and probes. Raises PlanError for an unknown name, and if
    no case remains.
    """
    operator, shape = project.shape(shape_name)
    declared = _cases(project, operator, shape, axes, seeds)
    chosen = [case for case in declared if not cases or any(word in case.id for word in cases)]
    if not chosen:
        raise PlanError(f"--case: expected a part of one of {[case.id for case in declared]}, but got {list(cases)}")
    return SanitizePlan(
        shape=shape_name,
        operator=operator.name,
        backend=backend,
        tools=tuple(tool for tool in TOOLS if not tools or tool in tools),
        variants=tuple(variant.name for variant in planned_variants(operator, variants)),
        cases=tuple(chosen),
        time_limit=checked_time_limit(time_limit),
        pruned=bool(tools or variants or cases or axes or seeds),
    )


def _lines(operator: Operator, shape: Shape) -> Sequence[Line]:
    """The lines declared for sanitizers; without any, the default case with all its steps."""
    return operator.sanitize.get(shape.name, operator.sanitize.get("", (Line(),)))


def _cases(
    project: Project, operator: Operator, shape: Shape, axes: Mapping[str, Sequence[AxisValue]], seeds: Sequence[int]
) -> list[Case]:
    lines = _lines(operator, shape)
    if not axes and not seeds:
        return [_case(project, operator, shape, line) for line in lines]
    generated = [line for line in lines if not line.capture and not line.probe]
    found: list[Case] = []
    for seed in seeds or (1,):
        declared = [
            operator.case(shape, line.axes, seed=seed, first_step_only=line.first_step_only) for line in generated
        ]
        found += cases_having(operator, shape, axes, seed, declared)
    return list({case.id: case for case in found}.values())


def _case(project: Project, operator: Operator, shape: Shape, line: Line) -> Case:
    axes = dict(line.axes)
    if line.capture:
        if project.captures is None or operator.capture_axes is None:
            raise PlanError(
                f"operator {operator.name}: its `sanitize` lines use the capture {line.capture!r}, which needs "
                f"`captures` in [tool.kernel-audit] and the operator's capture_axes; set both"
            )
        axes = {**captured_axes(operator, shape, line.capture, CaptureStore(project.captures)), **axes}
    return operator.case(
        shape, axes, seed=1, capture=line.capture, probe=line.probe, first_step_only=line.first_step_only
    )
