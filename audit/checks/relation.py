"""The results are what the declared relation to the parent permits; `bytes` judges where that is equality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from audit.backends.outcome import Completed
from audit.checks.difference import amount, largest_difference
from audit.checks.judgement import Judgement, judge, overall_error
from audit.checks.result import Figure, LargestDifference, Note, ReferenceErrors, Result, nothing, settled
from audit.checks.tally import Tally, tally
from audit.checks.view import Step, View
from audit.precision import unit_roundoff
from audit.relations import Bitwise, NoWorse, Relation, Unrelated, relation_text
from audit.spec import Array


def relation(view: View) -> Iterator[Result]:
    """One result a step: every buffer with a relation other than `Bitwise` and `Unrelated` is as that permits."""
    judged = {name: one for name, one in view.relations.items() if not isinstance(one, Bitwise | Unrelated)}
    if not judged:
        return
    if gap := uncompared(view, "relation"):
        yield gap
    if view.parent is None or gap:
        return
    pairs = zip(view.steps, view.parent.steps, strict=True)
    kept = False
    for result in settled([_judged(view, step, view.parent, theirs, judged) for step, theirs in pairs]):
        yield msgspec.structs.replace(result, differences=()) if kept else result
        kept = kept or bool(result.differences)


def uncompared(view: View, check: str) -> Result | None:
    """Why nothing can be compared with the parent, as a result; None where something can, or need not."""
    if view.parent is None:
        if view.variant.parent is None or view.baseline_only:
            return None
        return Result(check, "inconclusive", f"declares the parent {view.variant.parent}, but no ancestor of it ran")
    if not isinstance(view.parent.outcome, Completed):
        return Result(check, "inconclusive", f"the parent {view.parent.variant.name} did not complete")
    return None


def relation_notes(view: View) -> Iterator[Note]:
    """How far results are from those of a parent to which they are unrelated; and that no buffer is bitwise, where
    relations go by buffer."""
    if view.parent is None or not isinstance(view.outcome, Completed) or uncompared(view, "relation"):
        return
    names = [name for name, one in view.relations.items() if isinstance(one, Unrelated)]
    for step, theirs in zip(view.steps, view.parent.steps, strict=True):
        found = [_compared(view, step, view.parent, theirs, name) for name in names]
        found = [one for one in found if one.total]
        if found:
            text = "; ".join(_sentence(one, view.parent.variant.name) for one in found)
            largest = tuple(one.largest for one in found if one.largest)
            errors = tuple(one.errors for one in found if one.errors)
            yield Note("relation", f"unrelated: {text}", step.name, largest, errors)
    by_buffer = isinstance(view.variant.relation, Mapping)
    if by_buffer and not any(isinstance(one, Bitwise) for one in view.relations.values()):
        yield Note("bytes", NO_BUFFER)


SAME, LESS = "as accurate as its parent, not the same", "less accurate than its parent"
"""How a result with other bytes compares, by both errors."""
NO_BUFFER = "no buffer must equal the parent's bit for bit"
"""The note of a variant whose relations go by buffer and leave none to `bytes`."""


def errors_of(view: View, step: Step, parent: View, theirs: Step, names: Iterable[str]) -> tuple[ReferenceErrors, ...]:
    """The errors of both kernels against FP64, of the named buffers that a reference has in f64."""
    found = (_errors(view, step, parent, theirs, name) for name in names)
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True)
class _ComparedBuffer:
    """One buffer beside the parent's in one step."""

    name: str
    total: int  # written elements
    largest: LargestDifference | None
    differences: Tally | None
    errors: ReferenceErrors | None


def _compared(view: View, step: Step, parent: View, theirs: Step, name: str) -> _ComparedBuffer:
    written = view.written(step)[name]
    mine, their = view.words(step, name), parent.words(theirs, name)
    differ = (mine != their) & written
    at = np.flatnonzero(differ)
    largest, counts = None, None
    if at.size:
        largest = largest_difference(view, name, at, mine.reshape(-1)[at], their.reshape(-1)[at])
        counts = tally(name, view.buffers[name].extents(view.case), differ)
    errors = _errors(view, step, parent, theirs, name) if at.size else None
    return _ComparedBuffer(name, int(written.sum()), largest, counts, errors)


def _judged(view: View, step: Step, parent: View, theirs: Step, relations: Mapping[str, Relation]) -> Result:
    """The result of one step, whose figures are those of the buffer that uses most of its limit."""
    against = parent.variant.name
    found: list[tuple[_ComparedBuffer, Judgement, Relation]] = []
    for name, one in relations.items():
        compared = _compared(view, step, parent, theirs, name)
        if not compared.total:
            continue
        expected = _expected(view, step, name, one.reference if isinstance(one, NoWorse) else "")[1]
        if isinstance(one, NoWorse) and expected is None:
            what = f"reference {one.reference} has no f64 array for {name}, so nothing says whether it is no worse"
            return Result("relation", "inconclusive", what, step.name)
        words = (view.words(step, name), parent.words(theirs, name), view.written(step)[name])
        found.append((compared, judge(one, view.buffers[name], *words, expected, _nearby(view, step, name, one)), one))
    if not found:
        return nothing("relation", step.name, f"no element is written, and none was compared with parent {against}")
    worst, judgement, _ = max(found, key=lambda each: each[1].used)
    failed = [(each, judged, one) for each, judged, one in found if judged.outside]
    sentences = [f"{_sentence(each, against)}{_outside(judged, one)}" for each, judged, one in failed or found]
    return Result(
        "relation",
        "fail" if failed else "pass",
        "; ".join(sentences),
        step.name,
        _where(view, worst.name, judgement.at) if worst.largest else "",
        Figure.of(judgement.value),
        Figure.of(judgement.limit),
        tuple(each.differences for each, _, _ in failed if each.differences),
        tuple(each.largest for each, _, _ in found if each.largest),
        tuple(each.errors for each, _, _ in found if each.errors),
    )


def _outside(judged: Judgement, one: Relation) -> str:
    if not judged.outside:
        return f" (permitted: {relation_text(one)})"
    if not isinstance(one, NoWorse):
        return f"; {judged.outside} elements outside of {relation_text(one)}"
    rows = judged.outside - judged.whole
    parts = [f"{rows} row{'s' if rows > 1 else ''}"] * bool(rows) + ["the whole"] * judged.whole
    return f"; {' and '.join(parts)} outside of {relation_text(one)}"


def _sentence(one: _ComparedBuffer, parent: str) -> str:
    """How one buffer compares: never that it is equal where it is not."""
    if one.largest is None:
        return f"{one.name}: {one.total} elements equal parent {parent}"
    apart = amount([one.largest])
    text = f"{one.name}: {one.largest.differing} of {one.total} elements differ from parent {parent}, {apart}"
    return f"{text}, {accuracy(one.errors)}" if one.errors else text


def accuracy(errors: ReferenceErrors) -> str:
    """Both errors in words: `as accurate as its parent, not the same: relative L2 error 3e-08, parent's 3.1e-08`."""
    verdict = SAME if errors.as_accurate else LESS
    return (
        f"{verdict}: relative L2 error {errors.mine.value:.3g} against {errors.reference}, "
        f"parent's {errors.parents.value:.3g}"
    )


def _errors(view: View, step: Step, parent: View, theirs: Step, name: str) -> ReferenceErrors | None:
    declared = view.relations.get(name)
    reference, expected = _expected(view, step, name, declared.reference if isinstance(declared, NoWorse) else "")
    if expected is None:
        return None
    dtype, written = view.buffers[name].dtype, view.written(step)[name]
    mine, other = (
        Figure.of(overall_error(dtype, array, expected, written))
        for array in (view.array(step, name), parent.array(theirs, name))
    )
    return ReferenceErrors(name, reference, mine, other, Figure.of(unit_roundoff(dtype)))


def _expected(view: View, step: Step, name: str, reference: str) -> tuple[str, Array | None]:
    """The f64 array that stands for a buffer: of the named reference, or of the first that has one."""
    key = view.operator.measured.get(name, name)
    for known, arrays in step.references.items():
        array = arrays.get(key)
        if reference not in ("", known) or array is None or array.dtype != np.float64:
            continue
        if array.shape == view.buffers[name].shape(view.case):
            return known, array
    return reference, None


def _nearby(view: View, step: Step, name: str, one: Relation) -> Array | None:
    """The array of the reference of `NoWorse` for inputs that one rounding to f32 has moved."""
    if not isinstance(one, NoWorse) or step.nearby is None:
        return None
    return (step.nearby() or {}).get(one.reference, {}).get(view.operator.measured.get(name, name))


def _where(view: View, name: str, at: tuple[int, ...]) -> str:
    """An element, a row, or the whole buffer, by the names of its dimensions."""
    dims = view.buffers[name].dims_of(view.case)
    named = ", ".join(f"{dim}={i}" for dim, i in zip(dims, at, strict=False))
    return f"{name}[{named}]" if named else name
