"""The inputs of a case in each of its steps, generated or captured, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audit import declaration
from audit.capture.store import Capture, CaptureStore
from audit.errors import ProjectError
from audit.project import Project
from audit.spec import Case, Inputs, Operator


def load_capture(project: Project, case: Case) -> Capture | None:
    """The capture that a case names, verified; None if it names none."""
    if case.capture is None:
        return None
    if project.captures is None:
        raise ProjectError(
            f"case {case.id}: needs the capture {case.capture!r}, but the project has no folder of captures; "
            "set `captures` in [tool.kernel-audit]"
        )
    return CaptureStore(project.captures).load(case.capture)


def case_inputs(operator: Operator, case: Case, capture: Capture | None) -> tuple[Inputs, Mapping[str, Inputs]]:
    """The inputs, and the complete inputs of every step. Raises InputError if the operator does not admit them."""
    inputs = _inputs(operator, case, capture)
    changes = declaration.steps_of(operator, case, inputs)
    if case.first_step_only:
        changes = dict(list(changes.items())[:1])
    steps = {name: {**inputs, **change} for name, change in changes.items()}
    if operator.admit_inputs:
        for step_inputs in steps.values():
            declaration.ask(case, "admit_inputs", operator.admit_inputs, case, step_inputs, returns=Any)
    return inputs, steps


def _inputs(operator: Operator, case: Case, capture: Capture | None) -> Inputs:
    if capture is None:
        make = operator.probe(case.probe).inputs if case.probe else operator.inputs
        return declaration.inputs_from(operator, case, "inputs", make, case.rng())
    if operator.from_capture is None:
        raise ProjectError(
            f"operator {operator.name}: case {case.id} needs from_capture, which makes its inputs; declare it"
        )
    return declaration.inputs_from(operator, case, "from_capture", operator.from_capture, capture)
