"""The distance of results from a reference, as figures that are reported but not judged; bounds judge."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from audit import formats
from audit.checks.result import Figure
from audit.checks.view import Step, View
from audit.elements import is_float
from audit.errors import ProjectError
from audit.spec import Array

QUANTILES = (0.5, 0.99, 1.0)


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array of one step against one reference; NaN where a result is NaN."""

    name: str
    reference: str
    step: str
    max_abs: Figure
    relative_l2: Figure  # the absolute norm if the reference is 0
    ulp: tuple[int, ...] | None  # at QUANTILES, against the reference rounded to the array's type
    ulp_counts: tuple[int, ...] = ()  # elements at 0, 1, 2..3, 4..7 ... ULP: bins that double in width


def metrics(view: View) -> Iterator[Metric]:
    """One metric for each of the operator's own steps and each pair of an array and its reference that it declares."""
    for step in view.own_steps:
        got = view.got(step)
        for name, expected in view.operator.measured.items():
            for reference in view.operator.references:
                array = step.references[reference.name].get(expected)
                if array is not None and name in view.operator.derived and array.shape != got[name].shape:
                    raise ProjectError(
                        f"operator {view.case.operator}, case {view.case.id}: measured[{name!r}]: expected the shape "
                        f"of the result, {got[name].shape}, but got {array.shape} from reference {reference.name}"
                    )
                if array is not None and name in got and array.dtype == np.float64 and array.shape == got[name].shape:
                    dtype = view.buffers[name].dtype if name in view.buffers else ""
                    yield _metric(name, reference.name, step, got[name], array, dtype)
                    break


def _metric(name: str, reference: str, step: Step, stored: Array, expected: Array, dtype: str) -> Metric:
    got = formats.stored_values(dtype, stored) if dtype else stored
    with np.errstate(all="ignore"):
        error = got.astype(np.float64) - expected
        norm = float(np.linalg.norm(expected))
        relative = float(np.linalg.norm(error)) / (norm or 1.0)
    ulp: tuple[int, ...] | None = None
    counts: tuple[int, ...] = ()
    distances = _distances(stored, expected) if np.isfinite(got).all() else None
    if distances is not None and distances.size:
        ulp = tuple(int(value) for value in np.quantile(distances, QUANTILES, method="higher"))
        counts = tuple(np.bincount(np.frexp(distances.astype(np.float64).ravel())[1]).tolist())  # 2**(k-1) <= d < 2**k
    largest = Figure.of(float(np.abs(error).max(initial=0)))
    return Metric(name, reference, step.name, largest, Figure.of(relative), ulp, counts)


def _distances(stored: Array, expected: Array) -> Array | None:
    """In ulp of the stored type, from the reference rounded to it; None for f64 and integers."""
    if not is_float(stored.dtype) or stored.dtype == np.float64:
        return None
    with np.errstate(all="ignore"):
        return formats.ulp_distance(stored, formats.encoded(formats.FLOATS[stored.dtype], expected))
