"""What a check may say of an input family: whatever the family shows is a finding, unless a right kernel may show it.

A result that fails in a family is not judged, and becomes a note, where

- the family leaves the range of the generated values, or the operator has no reference, and the first variant without a
  parent fails there itself: such a step accuses by comparison alone. Nor does it accuse where one rounding of the
  inputs to f32 takes half of the bound's limit and explains the error;
- inputs moved by one ulp take half of the bound's limit: the data are too ill-conditioned for the bound;
- the same holds for a relation other than equality, whose bounds are those of the operator;
- the error has grown no more than the conditioning of the data explains;
- the family holds subnormal numbers and a variant is compiled to flush them.

What concerns safety (`completion`, `guards`, `workspace`, `inputs`, `repeat`) is always judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps

import msgspec
import numpy as np

from audit import families
from audit.checks.conditioning import GROWTH, HALF, Moved, in_place, share_used
from audit.checks.error import error, measured_bound
from audit.checks.finite import finite
from audit.checks.result import Note, Result
from audit.checks.view import Step, View
from audit.errors import AuditError
from audit.printable import one_line
from audit.spec import Bound, Source

Run = Callable[[View], Iterator[Result]]
_NOT_JUDGED = "not judged: "
_FLUSHING = ("use_fast_math", "ftz=true")


def judged(check: Run) -> Run:
    """The check, which judges the operator's steps as they are, and those of input families as this module says."""

    @wraps(check)
    def run(view: View) -> Iterator[Result]:
        yield from check(_part(view, view.own_steps))
        for step in view.steps:
            if step.family:
                yield from _in_family(check, view, step)

    return run


def family_notes(view: View, results: Sequence[Result]) -> Iterator[Note]:
    """A note for each result of an input family that is not judged."""
    named = {step.name for step in view.steps if step.family}
    for result in results:
        if result.step in named and result.detail.startswith(_NOT_JUDGED):
            yield Note(result.check, result.detail, result.step)


def _in_family(check: Run, view: View, step: Step) -> Iterator[Result]:
    try:
        found = [result for result in check(_part(view, [step])) if result.step == step.name]
    except AuditError as error:
        if check.__name__ != "error":
            raise
        yield Result("error", "pass", _NOT_JUDGED + one_line(error, 300), step.name)
        return
    for result in found:
        if result.verdict == "inconclusive" and result.measured is None:  # nothing to compare in this step
            yield msgspec.structs.replace(result, verdict="pass")
        elif result.verdict == "fail" and (why := _excuse(view, step, result)):
            yield Result(result.check, "pass", f"{_NOT_JUDGED}{why} ({result.detail})", step.name)
        else:
            yield result


def _part(view: View, steps: Sequence[Step]) -> View:
    """The view of some of its steps."""
    names = {step.name for step in steps}
    parent = view.parent
    if parent is not None:
        parent = replace(parent, steps=[step for step in parent.steps if step.name in names])
    on_host = [step for step in view.on_host if step.name in names]
    return replace(view, steps=list(steps), on_host=on_host, parent=parent)


def _excuse(view: View, step: Step, result: Result) -> str:
    """Why a right kernel may fail there; empty where it may not."""
    if step.family.startswith("denormal") and (flag := _flushes(view)):
        return f"compiled with {flag}, which flushes subnormal numbers"
    if families.outside(step.family) or not view.operator.references:
        why = _first_fails(view, step)
        return why or (_of_rounded_inputs(view, step, result) if view.operator.references else "")
    bounds = {f"error:{bound.name}": bound for bound in view.operator.bounds}
    if result.check in bounds:
        return _of_bound(view, step, bounds[result.check], result)
    if result.check == "relation" and any(_ill_conditioned(view, step, bound) for bound in bounds.values()):
        return "moving the inputs by one ulp takes more than half of a bound's limit"
    if result.check == "finite" and all(_ill_conditioned(view, step, bound) for bound in bounds.values()):
        return _first_fails(view, step)
    return ""


def _of_rounded_inputs(view: View, step: Step, result: Result) -> str:
    """Why a bound or a relation says nothing of data beyond the usual range: one rounding of the inputs to f32 takes
    half of the limit, and explains the error.

    The ulp of a narrower dtype would be too much: its numbers are exact, and a kernel that adds in it is at fault.
    """
    for bound in view.operator.bounds:
        if result.check in ("relation", f"error:{bound.name}"):
            share = _rounded_share(view, step, bound)
            if HALF < share < math.inf and _ratio(result) <= GROWTH * share:  # infinite: the limit is 0
                return f"one rounding of the inputs to f32 takes {share:.3g} of the limit of {bound.name}"
    return ""


def _rounded_share(view: View, step: Step, bound: Bound) -> float:
    """The share of the bound's limit that inputs take which one rounding to f32 has moved; 0 where nobody can say."""
    nearby = step.nearby() if step.nearby else None
    share = math.nan if nearby is None else _share_of(view, step, bound, Moved(nearby, nearby))
    return 0.0 if math.isnan(share) else share


def _share_of(view: View, step: Step, bound: Bound, moved: Moved) -> float:
    """The share of the bound's limit that these references take in place of the results; NaN where nobody can say."""
    try:
        results = in_place(view.operator, view.case, moved, bound.reference, view.got(step), step.inputs)
        measured = None if results is None else measured_bound(view, step, bound, results)
    except (AuditError, ValueError, OverflowError):
        measured = None
    return math.nan if measured is None else share_used(measured.value, measured.limit)


def _first_fails(view: View, step: Step) -> str:
    first = view.first or view
    for theirs in first.steps:
        if theirs.name == step.name:
            part = _part(first, [theirs])
            try:
                failed = [one.check for check in (finite, error) for one in check(part) if one.verdict == "fail"]
            except AuditError as raised:
                return one_line(raised, 300)
            if failed:
                return f"the first variant, {first.variant.name}, fails {failed[0]} there as well"
    return ""


def _flushes(view: View) -> str:
    views = [one for one in (view, view.parent, view.first) if one is not None]
    flags = [flag for one in views if isinstance(one.variant.code, Source) for flag in one.variant.code.flags]
    return next((flag for flag in flags if flag.endswith(_FLUSHING)), "")


def _of_bound(view: View, step: Step, bound: Bound, result: Result) -> str:
    now, before = _moved_share(view, step, bound), _moved_share(view, view.steps[0], bound)
    if math.isnan(now) or math.isnan(before):
        return _first_fails(view, step)
    if now > HALF and now > before:
        return f"moving the inputs by one ulp takes {now:.3g} of the limit"
    explained = GROWTH * min(_share(view, bound), 1.0) * max(1.0, now / before if 0 < before < math.inf else 1.0)
    if result.measured and result.limit and _ratio(result) <= explained:
        return f"the error grew no more than the conditioning of the data explains, {explained:.3g} times the limit"
    return ""


def _ill_conditioned(view: View, step: Step, bound: Bound) -> bool:
    now, before = _moved_share(view, step, bound), _moved_share(view, view.steps[0], bound)
    return not (now <= HALF or now <= before)


def _share(view: View, bound: Bound) -> float:
    """The largest share of the bound's limit that the variant takes in the first step."""
    measured = measured_bound(view, view.steps[0], bound, view.got(view.steps[0]))
    return share_used(measured.value, measured.limit) if measured is not None else 0.0


def _ratio(result: Result) -> float:
    if result.measured is None or result.limit is None:
        return math.inf
    return share_used(np.array([result.measured.value]), np.array([result.limit.value]))


def _moved_share(view: View, step: Step, bound: Bound) -> float:
    """The share of the bound's limit that moved inputs take in a step; NaN where nobody can say."""
    moved = step.moved() if step.moved else None
    if moved is None:
        return math.nan
    if bound.name not in moved.used:
        moved.used[bound.name] = _share_of(view, step, bound, moved)
    return moved.used[bound.name]
