"""Every byte that the parent writes, the candidate writes alike, unless it declares another relation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec
import numpy as np

from audit.backends.outcome import Completed
from audit.checks.difference import amount, largest_difference
from audit.checks.relation import errors_of, uncompared
from audit.checks.result import Figure, LargestDifference, Note, Result, nothing, settled
from audit.checks.tally import Tally, tally
from audit.checks.view import Step, View
from audit.relations import Bitwise


def bytes_(view: View) -> Iterator[Result]:
    """The buffers with the relation `Bitwise` equal the parent's in every bit of the written region."""
    names = [name for name, relation in view.relations.items() if isinstance(relation, Bitwise)]
    if not names:
        return
    if gap := uncompared(view, "bytes"):
        yield gap
    if view.parent is None or gap:
        return
    parent, against = view.parent, f"parent {view.parent.variant.name}"
    found = []
    for step, theirs in zip(view.steps, parent.steps, strict=True):
        result = compare_bytes(view, step, parent, theirs, "bytes", against, names)
        errors = errors_of(view, step, parent, theirs, [one.buffer for one in result.largest])
        found.append(msgspec.structs.replace(result, errors=errors))
    yield from tallied_once(settled(found))


def zero_notes(view: View) -> Iterator[Note]:
    """Whether a variant left nothing but zeros, which many faults leave as well."""
    if not isinstance(view.outcome, Completed):
        return
    parts = [view.words(step, name)[written] for step in view.own_steps for name, written in view.written(step).items()]
    if sum(part.size for part in parts) and not any(part.any() for part in parts):
        yield Note("bytes", "every element that was written is zero: check that the inputs reach the results")


def repeat(view: View) -> Iterator[Result]:
    """`restore` reproduces the bytes of `live`, on buffers poisoned afresh; so does a run of its own with another
    schedule of threads, other poison and other addresses."""
    yield from tallied_once(settled(_repeated(view)))


def _repeated(view: View) -> Iterator[Result]:
    steps = {step.name: step for step in view.steps}
    if "live" in steps and "restore" in steps:
        yield compare_bytes(view, steps["restore"], view, steps["live"], "repeat", "live")
    for step in view.again:
        yield compare_bytes(view, step, view, steps[step.name], "repeat", f"{step.name} under another schedule")


def tallied_once(results: Iterable[Result]) -> Iterator[Result]:
    """The same results, tallies kept in the first that has some: a record stays small where everything fails."""
    kept = False
    for result in results:
        yield msgspec.structs.replace(result, differences=()) if kept else result
        kept = kept or bool(result.differences)


def compare_bytes(
    view: View, step: Step, other: View, theirs: Step, check: str, against: str, names: Collection[str] | None = None
) -> Result:
    """Compare two steps bit for bit over the written region of all buffers, or of the named ones; NaNs with equal bits
    are equal here.

    The result of steps without a written element is inconclusive.
    """
    total, first = 0, ""
    tallies: list[Tally] = []
    largest: list[LargestDifference] = []
    for name, written in view.written(step).items():
        if names is not None and name not in names:
            continue
        mine, their = view.words(step, name), other.words(theirs, name)
        differ = (mine != their) & written
        total += int(written.sum())
        at = np.flatnonzero(differ)
        if not at.size:
            continue
        buffer = view.buffers[name]
        largest.append(largest_difference(view, name, at, mine.reshape(-1)[at], their.reshape(-1)[at]))
        tallies += [counts] if (counts := tally(name, buffer.extents(view.case), differ)) else []
        if not first:
            first = view.element(name, int(at[0]))
            left, right = (f"0x{words.flat[at[0]]:0{2 * words.itemsize}x}" for words in (mine, their))
            values = f"the first {first} is {left}, {against} has {right}"
    if total == 0:
        return nothing(check, step.name, f"no element is written, and none was compared with {against}")
    count = sum(one.differing for one in largest)
    return Result(
        check,
        "fail" if count else "pass",
        f"{count} of {total} elements differ, {amount(largest)}; {values}"
        if count
        else f"{total} elements equal {against}",
        step.name,
        first,
        Figure.of(count),
        Figure.of(0),
        tuple(tallies),
        tuple(largest),
    )
