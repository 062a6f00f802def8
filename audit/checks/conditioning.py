"""How far a result may be off because its inputs were rounded: the judge of what a bound can say of a step.

A bound is argued for the inputs that an operator generates. For those of an input family the same limit may ask for
more than arithmetic can give. So the references are computed again for inputs moved by one ulp, and what they give goes
through the bound in place of a kernel's results, as the output's dtype stores it. Where that alone takes half of the
limit, the bound is not judged. Elements are moved one by one for results that are floating point. For integers, such as
the index of a maximum, equal elements move together, so that ties stay ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from audit import families, formats
from audit.declaration import ask, buffers_of
from audit.spec import Array, Buffer, Case, Operator

HALF = 0.5
"""The share of a limit that moved inputs may take."""
GROWTH = 8.0
"""By how much more than the conditioning of the data an error may grow, from the first step to a family's, before the
kernel is accused: sums of one sign lose more than random ones."""


@dataclass(frozen=True)
class Moved:
    """What the references give for moved inputs: reference -> arrays.

    singly    each element moved for itself
    together  equal elements moved together
    used      bound -> the share of its limit that this takes, once it is known; NaN where nobody can say
    """

    singly: Mapping[str, Mapping[str, Array]]
    together: Mapping[str, Mapping[str, Array]]
    used: dict[str, float] = field(default_factory=dict, compare=False)


def standing_for(operator: Operator, case: Case, arrays: Mapping[str, Array]) -> dict[str, str]:
    """Output -> the array of a reference that stands for it: of its name, as `measured` says, or alone of its shape."""
    outputs = {one.name: one.shape(case) for one in buffers_of(operator, case) if one.role in ("out", "inout")}
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    found = {
        name: theirs
        for name, shape in outputs.items()
        if shapes.get(theirs := operator.measured.get(name, name)) == shape
    }
    rest = [name for name in outputs if name not in found]
    for name in rest:
        alike = [theirs for theirs, shape in shapes.items() if shape == outputs[name] and theirs not in found.values()]
        if len(alike) == 1 and sum(outputs[other] == outputs[name] for other in rest) == 1:
            found[name] = alike[0]
    return found


def in_place(
    operator: Operator, case: Case, moved: Moved, reference: str, got: Mapping[str, Array], inputs: Mapping[str, object]
) -> dict[str, Array] | None:
    """A kernel's results with what the moved references give in place of the outputs; None where nothing fits."""
    buffers = {buffer.name: buffer for buffer in buffers_of(operator, case)}
    arrays = moved.singly.get(reference) or next(iter(moved.singly.values()), {})
    together = moved.together.get(reference) or next(iter(moved.together.values()), {})
    pairs = standing_for(operator, case, arrays)
    if not pairs:
        return None
    replaced = {name: array for name, array in got.items() if name in buffers}
    for mine, theirs in pairs.items():
        floating = buffers[mine].dtype in families.FLOATS
        replaced[mine] = _stored(buffers[mine], np.asarray((arrays if floating else together)[theirs]), got[mine])
    for name, derive in operator.derived.items():
        replaced[name] = ask(case, f"derived {name}", derive, case, inputs, dict(replaced), returns=Array)
    return replaced


def _stored(buffer: Buffer, values: Array, like: Array) -> Array:
    with np.errstate(all="ignore"):
        if buffer.dtype in families.FLOATS:
            return formats.encoded(buffer.dtype, values.astype(np.float64)).reshape(like.shape)
        return (np.rint(values) if values.dtype.kind == "f" else values).astype(like.dtype).reshape(like.shape)


def share_used(value: Array, limit: Array) -> float:
    """The largest share of its limit that an error takes; infinite for a NaN, and for any error over a limit of 0."""
    with np.errstate(all="ignore"):
        used = np.where(value == 0, 0.0, np.divide(value, limit, dtype=np.float64))
    return float(np.where(np.isnan(used) | (used < 0), np.inf, used).max(initial=0.0))
