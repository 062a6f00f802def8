"""The inputs of a case in each of its steps, generated or captured, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


class StoredInputs(NamedTuple):
    """The inputs of a case as its buffers hold them."""

    inputs: Inputs
    steps: Mapping[str, Inputs]  # complete
    converted: dict[str, str]  # buffer -> what was done to the array that the declaration gave


def case_inputs(operator: Operator, case: Case, capture: Capture | None) -> tuple[Inputs, Mapping[str, Inputs]]:
    """The inputs, and the complete inputs of every step. Raises InputError if the operator does not admit them."""
    inputs, steps, _ = stored_inputs(operator, case, capture)
    return inputs, steps


def stored_inputs(operator: Operator, case: Case, capture: Capture | None) -> StoredInputs:
    """`case_inputs`, and how the buffers hold them."""
    inputs, converted = _inputs(operator, case, capture)
    changes = declaration.steps_of(operator, case, inputs)
    if case.first_step_only:
        changes = dict(list(changes.items())[:1])
    steps, notes = {}, dict(converted)
    for name, change in changes.items():
        stored, found = declaration.as_stored(operator, case, f"steps[{name!r}]", operator.steps, change)
        steps[name] = {**inputs, **stored}
        notes.update({buffer: note for buffer, note in found.items() if buffer not in notes})
    if operator.admit_inputs:
        for step_inputs in steps.values():
            declaration.ask(case, "admit_inputs", operator.admit_inputs, case, step_inputs, returns=Any)
    return StoredInputs(inputs, steps, notes)


def _inputs(operator: Operator, case: Case, capture: Capture | None) -> tuple[Inputs, Mapping[str, str]]:
    if capture is None:
        make = operator.probe(case.probe).inputs if case.probe else operator.inputs
        given = declaration.inputs_from(operator, case, "inputs", make, case.rng())
        return declaration.as_stored(operator, case, "inputs", make, given)
    if operator.from_capture is None:
        raise ProjectError(
            f"operator {operator.name}: case {case.id} needs from_capture, which makes its inputs; declare it"
        )
    given = declaration.inputs_from(operator, case, "from_capture", operator.from_capture, capture)
    return declaration.as_stored(operator, case, "from_capture", operator.from_capture, given)
