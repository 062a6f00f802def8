"""Every written floating-point element is finite, and every bool is 0 or 1. `bytes` cannot see that: two equal NaNs are
equal bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit.checks.result import Figure, Result, nothing, settled
from audit.checks.view import Step, View
from audit.declaration import nonfinite_of
from audit.elements import is_float


def finite(view: View) -> Iterator[Result]:
    """No NaN and no infinity in the written region of any output or workspace, but where the operator means them; no
    bool whose byte is neither 0 nor 1."""
    yield from settled(_finite(view, step) for step in view.steps)


def _finite(view: View, step: Step) -> Result:
    total, count, odd, where = 0, 0, 0, ""
    meant = nonfinite_of(view.operator, view.case, step.inputs)
    for name, written in view.written(step).items():
        total += int(written.sum())
        array = view.array(step, name)
        if array.dtype == np.bool_:
            odd += int(np.count_nonzero(flaws := written & (view.words(step, name) > 1)))
        elif is_float(array.dtype):
            flaws = written & ~np.isfinite(array) & ~meant[name]
        else:
            continue
        bad = np.flatnonzero(flaws)
        count += bad.size
        if bad.size and not where:
            where = view.element(name, int(bad[0]))
    if total == 0:
        return nothing("finite", step.name, "no element is written")
    parts = [f"{count - odd} elements are NaN or infinite"] if count > odd else []
    parts += [f"{odd} elements of bool are neither 0 nor 1"] if odd else []
    return Result(
        "finite",
        "fail" if count else "pass",
        f"{' and '.join(parts)}, the first {where}" if count else "all written elements finite",
        step.name,
        where,
        Figure.of(count),
        Figure.of(0),
    )
