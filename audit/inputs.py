"""The inputs of a case in each of its steps, generated or captured, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from audit import arena, declaration, families, formats
from audit.capture.store import Capture, CaptureStore
from audit.errors import AuditError, ProjectError
from audit.precision import unit_roundoff
from audit.printable import one_line
from audit.project import Project
from audit.spec import Array, Case, Families, Inputs, Operator


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


def family_steps(
    operator: Operator, case: Case, steps: Mapping[str, Inputs]
) -> tuple[dict[str, Inputs], dict[str, str]]:
    """The complete inputs of each input family of a case that applies, and why each other does not.

    A family changes the inputs of the first step. One that the operator's `admit_inputs` refuses does not apply, nor
    does one for which a mask of the operator raises.
    """
    found: dict[str, Inputs] = {}
    left_out: dict[str, str] = {}
    first = next(iter(steps.values()))
    for name in case.families:
        if name in steps:
            left_out[name] = "the operator has a step of this name"
            continue
        try:
            changed = _family(operator, case, name, first)
            if not changed:
                left_out[name] = "it changes no buffer, or would break what holds of the generated ones"
                continue
            inputs = {**first, **changed}
            with np.errstate(all="ignore"):
                if operator.admit_inputs:
                    declaration.ask(case, "admit_inputs", operator.admit_inputs, case, inputs, returns=Any)
                declaration.masks_of(operator, case, inputs)
                declaration.nonfinite_of(operator, case, inputs)
        except AuditError as error:
            left_out[name] = one_line(error, 300)
            continue
        found[name] = inputs
    return found, left_out


def _family(operator: Operator, case: Case, name: str, first: Inputs) -> Mapping[str, Array]:
    """The arrays that a family changes, in the dtype of the given ones."""
    if families.is_draw(name):
        return _drawn_again(operator, case, name, first)
    named = operator.plan.buffers if isinstance(operator.plan, Families) else ()
    buffers = [
        buffer
        for buffer in declaration.buffers_of(operator, case)
        if buffer.role in ("in", "inout") and (buffer.dtype in families.FLOATS or buffer.name in named)
    ]
    stored = {buffer.name: arena.input_array(buffer, case, first) for buffer in buffers}
    return families.changed_arrays(name, case, buffers, stored)


def _drawn_again(operator: Operator, case: Case, name: str, first: Inputs) -> Mapping[str, Array]:
    """Another draw of the generated inputs. Nothing where they come from elsewhere, or a scalar argument differs."""
    if case.probe or case.capture:
        return {}
    given = declaration.inputs_from(operator, case, "inputs", operator.inputs, families.drawn_by(case, name))
    drawn, _ = declaration.as_stored(operator, case, "inputs", operator.inputs, given)
    arrays = {key: np.asanyarray(value) for key, value in drawn.items() if np.ndim(value)}
    scalars = [key for key, value in drawn.items() if not np.ndim(value) and not _same(value, first.get(key))]
    if scalars or drawn.keys() != first.keys():
        return {}
    return {key: array for key, array in arrays.items() if not _same(array, first[key])}


def _same(one: object, other: object) -> bool:
    left, right = np.asanyarray(one), np.asanyarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def moved_inputs(operator: Operator, case: Case, inputs: Inputs, rng: np.random.Generator | None) -> Inputs:
    """The inputs with every floating-point element moved by one ulp of its buffer's dtype, as `families.moved` does."""
    changed = {}
    for buffer in declaration.buffers_of(operator, case):
        if buffer.role in ("in", "inout") and buffer.dtype in families.FLOATS:
            stored = arena.input_array(buffer, case, inputs)
            changed[buffer.name] = families.moved(stored, buffer.dtype, rng)
    return {**inputs, **changed}


def nearby_inputs(operator: Operator, case: Case, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """The inputs with every floating-point element moved up or down by what one rounding to f32 may do, 2**-24.

    Elements of f32 and f64 buffers move by one ulp; narrower ones, which are exact in f32, become f64.
    """
    changed = {}
    for buffer in declaration.buffers_of(operator, case):
        if buffer.role in ("in", "inout") and buffer.dtype in families.FLOATS:
            stored = arena.input_array(buffer, case, inputs)
            if buffer.dtype in ("f32", "f64"):
                changed[buffer.name] = families.moved(stored, buffer.dtype, rng)
            else:
                values = formats.stored_values(buffer.dtype, stored).astype(np.float64)
                changed[buffer.name] = values * (1 + rng.choice((-1, 1), values.shape) * unit_roundoff("f32"))
    return {**inputs, **changed}


def representable(dtype: str, expected: Array) -> Array:
    """The values of a reference as a buffer of a dtype can store them: rounded, and infinite past the largest."""
    with np.errstate(all="ignore"):
        if dtype in families.FLOATS:
            return formats.stored_values(dtype, formats.encoded(dtype, expected.astype(np.float64)))
        return expected


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
