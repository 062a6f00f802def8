"""A case before any variant runs: the inputs of each step, its input families, and the results of the references.

A family whose reference raises does not apply, nor does one whose reference is not finite where that of the first step
is. Where a family fails a bound, references are computed for moved inputs as well. They show how far a result may be
off for no other reason than that its inputs were rounded (`audit.checks.conditioning`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from audit import arena, families
from audit.capture.store import Capture
from audit.checks.conditioning import Moved, standing_for
from audit.declaration import arrays_of, buffers_of
from audit.errors import AuditError
from audit.execution import CaseInputs
from audit.inputs import family_steps, moved_inputs, nearby_inputs, representable, stored_inputs
from audit.printable import one_line
from audit.spec import Array, Case, Inputs, Operator

References = Mapping[str, Mapping[str, Array]]
"""reference -> its arrays by name."""


def prepared_case(operator: Operator, case: Case, capture: Capture | None, within: float | None = None) -> CaseInputs:
    """The prepared case. Families for which the references would take more than `within` seconds are left out."""
    inputs, steps, converted = stored_inputs(operator, case, capture)
    references = _references(operator, case, steps)
    further, left_out = family_steps(operator, case, steps)
    nearby = {name: cache(partial(_nearby, operator, case, changed)) for name, changed in steps.items()}
    if not case.families:
        return CaseInputs(operator, case, inputs, steps, references, converted, nearby=nearby)
    first = next(iter(steps))
    moved = {first: cache(partial(_moved, operator, case, steps[first]))}
    began = time.monotonic()
    for name, changed in further.items():
        if within is not None and time.monotonic() - began > within:
            left_out[name] = f"the references took {within:g} s by then; name it with --family"
            continue
        try:
            with np.errstate(all="ignore"):
                expected = {one.name: arrays_of(operator, one, case, changed) for one in operator.references}
        except AuditError as error:
            left_out[name] = one_line(error, 300)
            continue
        if where := _not_finite(operator, case, references[first], expected):
            left_out[name] = f"{where} is not finite"
            continue
        steps = {**steps, name: changed}
        references[name] = expected
        moved[name] = cache(partial(_moved, operator, case, changed))
        nearby[name] = cache(partial(_nearby, operator, case, changed))
    ran = tuple(name for name in further if name in steps)
    return CaseInputs(operator, case, inputs, steps, references, converted, ran, left_out, moved, nearby)


def without_families(prepared: CaseInputs, names: Iterable[str], why: str) -> CaseInputs:
    """The same case without some of its input families."""
    dropped = dict.fromkeys(names, why)
    return replace(
        prepared,
        steps={name: inputs for name, inputs in prepared.steps.items() if name not in dropped},
        families=tuple(name for name in prepared.families if name not in dropped),
        left_out={**prepared.left_out, **dropped},
    )


def _references(operator: Operator, case: Case, steps: Mapping[str, Inputs]) -> dict[str, References]:
    """step -> reference -> arrays, computed before any variant runs; steps with equal inputs share them."""
    by_digest: dict[str, References] = {}
    by_step = {}
    for name, inputs in steps.items():
        digest = arena.input_digest(inputs)
        if digest not in by_digest:
            by_digest[digest] = {one.name: arrays_of(operator, one, case, inputs) for one in operator.references}
        by_step[name] = by_digest[digest]
    return by_step


def _moved(operator: Operator, case: Case, inputs: Inputs) -> Moved | None:
    """The references for moved inputs; None where one of them raises."""
    if not operator.bounds or not operator.references:
        return None

    def expected(rng: np.random.Generator | None) -> References:
        changed = moved_inputs(operator, case, inputs, rng)
        return {one.name: arrays_of(operator, one, case, changed) for one in operator.references}

    try:
        with np.errstate(all="ignore"):
            return Moved(expected(families.drawn_by(case, "moved")), expected(None))
    except AuditError:
        return None


def _nearby(operator: Operator, case: Case, inputs: Inputs) -> References | None:
    """The references for inputs that one rounding to f32 has moved; None where one of them raises."""
    try:
        with np.errstate(all="ignore"):
            changed = nearby_inputs(operator, case, inputs, families.drawn_by(case, "nearby"))
            return {one.name: arrays_of(operator, one, case, changed) for one in operator.references}
    except AuditError:
        return None


def _not_finite(operator: Operator, case: Case, usual: References, expected: References) -> str:
    """The first array of a reference that has an infinity or a NaN where the first step has none; empty for none.

    An array that stands for an output counts as that output stores it.
    """
    dtypes = {buffer.name: buffer.dtype for buffer in buffers_of(operator, case) if buffer.role in ("out", "inout")}
    for reference, arrays in expected.items():
        stored = {theirs: dtypes[mine] for mine, theirs in standing_for(operator, case, arrays).items()}
        for name, array in arrays.items():
            before = usual[reference].get(name)
            if before is None or np.asarray(array).dtype.kind != "f":
                continue
            values, base = (representable(stored.get(name, ""), np.asarray(one)) for one in (array, before))
            bad = ~np.isfinite(values)
            if values.shape == base.shape:
                bad = bad & np.isfinite(base)
            if bad.any():
                return f"reference {reference}, array {name}"
    return ""
