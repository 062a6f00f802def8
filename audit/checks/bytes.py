"""Every byte that the parent writes, the candidate writes alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from audit.backends.outcome import Completed
from audit.checks.result import Figure, Result
from audit.checks.tally import Tally, tally
from audit.checks.view import Step, View


def bytes_(view: View) -> Iterator[Result]:
    """Outputs and workspaces equal the parent's in every bit of the written region."""
    if view.parent is None:
        return
    if not isinstance(view.parent.outcome, Completed):
        yield Result("bytes", "inconclusive", f"the parent {view.parent.variant.name} did not complete")
        return
    parent, against = view.parent, f"parent {view.parent.variant.name}"
    pairs = zip(view.steps, parent.steps, strict=True)
    yield from tallied_once(compare_bytes(view, step, parent, theirs, "bytes", against) for step, theirs in pairs)


def repeat(view: View) -> Iterator[Result]:
    """`restore` reproduces the bytes of `live`, on buffers poisoned afresh; so does a run of its own with another
    schedule of threads, other poison and other addresses."""
    yield from tallied_once(_repeated(view))


def _repeated(view: View) -> Iterator[Result]:
    steps = {step.name: step for step in view.steps}
    if "live" in steps and "restore" in steps:
        yield compare_bytes(view, steps["restore"], view, steps["live"], "repeat", "live")
    for step in view.again:
        yield compare_bytes(view, step, view, steps[step.name], "repeat", f"{step.name} under another schedule")


def tallied_once(results: Iterable[Result]) -> Iterator[Result]:
    """The same results, differences kept in the first that has some: evidence stays small where everything fails."""
    told = False
    for result in results:
        yield msgspec.structs.replace(result, differences=()) if told else result
        told = told or bool(result.differences)


def compare_bytes(view: View, step: Step, other: View, theirs: Step, check: str, against: str) -> Result:
    """Compare two steps bit for bit over the written region; NaNs with equal bits are equal here."""
    count, total, where, first = 0, 0, "", ""
    tallies: list[Tally] = []
    for name, written in view.written(step).items():
        mine, their = view.words(step, name), other.words(theirs, name)
        differ = (mine != their) & written
        total += int(written.sum())
        if (here := int(differ.sum())) and not where:
            index = int(np.flatnonzero(differ)[0])
            where = view.place(name, index)
            digits = 2 * mine.itemsize
            first = f"{where} is 0x{mine.flat[index]:0{digits}x}, {against} has 0x{their.flat[index]:0{digits}x}"
        count += here
        extents = view.buffers[name].extents(view.case)
        tallies += [found] if (found := tally(name, extents, differ)) else []
    return Result(
        check,
        "fail" if count else "pass",
        f"{count} of {total} elements differ, the first {first}" if count else f"{total} elements equal {against}",
        step.name,
        where,
        Figure.of(count),
        Figure.of(0),
        tuple(tallies),
    )
