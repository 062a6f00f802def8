"""The error against the references lies within what the arithmetic permits, element for element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from audit.checks.comparand import comparands, plain
from audit.checks.result import Figure, Result, nothing, settled
from audit.checks.view import Step, View
from audit.declaration import measured_by
from audit.errors import ProjectError
from audit.relations import Unrelated
from audit.spec import Array, Bound, Measured


def error(view: View) -> Iterator[Result]:
    """One result a step and bound: pass only where value <= limit everywhere (a NaN fails).

    A bound that applies to the case, and measures no element in any of its steps, is inconclusive.
    """
    found: list[Result] = []
    for step in view.steps:
        got = view.got(step)
        found += [result for bound in view.operator.bounds if (result := _judge(view, step, bound, got))]
    unrelated = all(isinstance(one, Unrelated) for one in view.relations.values())
    if not found and (view.variant.parent is None or unrelated) and not view.baseline_only:
        silent = "a bound that applies to this case" if view.operator.bounds else "a bound"
        yield Result("error", "inconclusive", f"neither a parent nor {silent} says what is right")
    checks = {result.check for result in found}
    by_check = {check: iter(settled(result for result in found if result.check == check)) for check in checks}
    yield from (next(by_check[result.check]) for result in found)


def probe(view: View) -> Iterator[Result]:
    """A probe's closed form holds in the first step, within the limit that the probe argues."""
    if view.case.probe is None:
        return
    found = view.operator.probe(view.case.probe)
    for step in view.steps[:1]:
        with np.errstate(all="ignore"):
            measured = measured_by(
                view.case, f"probe {found.name}", found.expect, view.case, step.inputs, view.got(step)
            )
        yield _compare(f"probe:{found.name}", step, measured)


def _judge(view: View, step: Step, bound: Bound, got: dict[str, Array]) -> Result | None:
    check = f"error:{bound.name}"
    if bound.reference and bound.reference not in step.references:
        return Result(check, "inconclusive", f"there is no reference {bound.reference!r}", step.name)
    measured = measured_bound(view, step, bound, got)
    return None if measured is None else _compare(check, step, measured)


def measured_bound(view: View, step: Step, bound: Bound, got: dict[str, Array]) -> Measured | None:
    """What a bound measures of some results in a step; None where it does not apply."""
    with np.errstate(all="ignore"):  # wrong results overflow here; the comparison still fails them
        measured = measured_by(
            view.case,
            f"bound {bound.name}",
            bound.measure,
            view.case,
            step.inputs,
            comparands(got, "result"),
            comparands(step.references.get(bound.reference, {}), "reference"),
            returns=Measured | None,
        )
    if measured is None:
        return None
    measured = replace(measured, value=plain(measured.value), limit=plain(measured.limit))
    if bound.output and not measured.dims:
        measured = replace(measured, dims=_leading_dims(view, bound, measured.value.shape))
    return measured


def _leading_dims(view: View, bound: Bound, shape: tuple[int, ...]) -> tuple[str, ...]:
    """The names of the first dimensions of a buffer; a derived array, which has no buffer, has none."""
    buffer = view.buffers.get(bound.output)
    if buffer is None:
        return _numbered(len(shape))
    if shape != (expected := buffer.shape(view.case)[: len(shape)]):
        raise ProjectError(
            f"operator {view.operator.name}, case {view.case.id}: bound {bound.name}: expected errors of the shape of "
            f"{bound.output}, or of its first dimensions, {expected}, but got {shape}; name their dimensions in `dims`"
        )
    return buffer.dims_of(view.case)[: len(shape)]


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"axis{at}" for at in range(count))


def _compare(check: str, step: Step, measured: Measured) -> Result:
    with np.errstate(all="ignore"):
        within = measured.value <= measured.limit
        # the fraction of the limit that is used; 0 of 0 is 0, and whatever is not within sorts last
        used = np.where(measured.value == 0, 0.0, measured.value / measured.limit)
        used = np.where(within, used, np.where(used > 1, used, np.inf))
    if used.size == 0:
        return nothing(check, step.name, "the bound measured no element")
    index = np.unravel_index(int(np.argmax(used)), used.shape)
    dims = measured.dims or _numbered(used.ndim)
    where = ", ".join(f"{dim}={int(i)}" for dim, i in zip(dims, index, strict=True))
    outside = int(np.count_nonzero(~within))
    return Result(
        check,
        "fail" if outside else "pass",
        f"{outside} of {within.size} outside the bound" if outside else f"{within.size} within the bound",
        step.name,
        where,
        Figure.of(float(measured.value[index])),
        Figure.of(float(measured.limit[index])),
    )
