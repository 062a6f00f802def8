"""A case before anything runs: its inputs, generated or captured, in each of its steps."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

from audit.capture.store import Capture, CaptureStore
from audit.errors import AuditError, InputError, ProjectError
from audit.project import Project
from audit.spec import Case, Inputs, Operator

T = TypeVar("T")


def load_capture(project: Project, case: Case) -> Capture | None:
    """The capture that a case names, verified; None where it names none."""
    if case.capture is None:
        return None
    if project.captures is None:
        raise ProjectError(f"case {case.id}: needs a capture, but the project's settings name no captures")
    return CaptureStore(project.captures).load(case.capture)


def case_inputs(operator: Operator, case: Case, capture: Capture | None) -> tuple[Inputs, Mapping[str, Inputs]]:
    """The inputs, and those of every step, whole. Raises InputError where the operator does not admit them."""
    inputs = _inputs(operator, case, capture)
    changes = ask(case, "steps", operator.steps, case, inputs)
    if case.first_step_only:
        changes = dict(list(changes.items())[:1])
    steps = {name: {**inputs, **change} for name, change in changes.items()}
    if operator.admit_inputs:
        for given in steps.values():
            ask(case, "admit_inputs", operator.admit_inputs, case, given)
    return inputs, steps


def ask(case: Case, what: str, function: Callable[..., T], *args: object) -> T:
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


def _inputs(operator: Operator, case: Case, capture: Capture | None) -> Inputs:
    if capture is None:
        make = operator.probe(case.probe).inputs if case.probe else operator.inputs
        return ask(case, "inputs", make, case, case.rng())
    if operator.from_capture is None:
        raise ProjectError(f"operator {operator.name}: cases with a capture need from_capture")
    return ask(case, "from_capture", operator.from_capture, case, capture)
