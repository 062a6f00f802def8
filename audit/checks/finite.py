"""Every written floating-point element is finite. `bytes` cannot see that: two equal NaNs are equal bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit import formats
from audit.checks.result import Figure, Result, nothing, settled
from audit.checks.view import Step, View
from audit.declaration import nonfinite_of


def finite(view: View) -> Iterator[Result]:
    """No NaN and no infinity in the written region of any output or workspace, but where the operator means them."""
    yield from settled(_finite(view, step) for step in view.steps)


def _finite(view: View, step: Step) -> Result:
    total, count, where = 0, 0, ""
    meant = nonfinite_of(view.operator, view.case, step.inputs)
    for name, written in view.written(step).items():
        total += int(written.sum())
        array = formats.stored_values(view.buffers[name].dtype, view.array(step, name))
        if array.dtype.kind != "f":
            continue
        bad = np.flatnonzero(written & ~np.isfinite(array) & ~meant[name])
        count += bad.size
        if bad.size and not where:
            where = view.element(name, int(bad[0]))
    if total == 0:
        return nothing("finite", step.name, "no element is written")
    return Result(
        "finite",
        "fail" if count else "pass",
        f"{count} elements are NaN or infinite, the first {where}" if count else "all written elements finite",
        step.name,
        where,
        Figure.of(count),
        Figure.of(0),
    )
