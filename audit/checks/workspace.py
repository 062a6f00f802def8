"""A kernel writes every element that the contract requires and no other; the others keep their poison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit.arena import is_ambiguous
from audit.checks.result import Figure, Result
from audit.checks.view import Step, View
from audit.spec import Array


def workspace(view: View) -> Iterator[Result]:
    """Outputs and workspaces: no poison inside the written region, only poison outside it."""
    total = dict.fromkeys((buffer.name for buffer in view.results), 0)
    for step in view.steps:
        wrong, where, counted, first = 0, "", 0, ""
        for name, written in view.written(step).items():
            poisoned = _poisoned(view, step, name)
            counted += int(written.sum())
            total[name] += int(written.sum())
            for bad, what in (
                (written & poisoned, "not written"),
                (~written & ~poisoned, "written, must not be"),
            ):
                if count := int(bad.sum()):
                    at = view.element(name, int(np.flatnonzero(bad)[0]))
                    where, first = where or at, first or f"{count} elements of {name} {what}, the first {at}"
                    wrong += count
        yield Result(
            "workspace",
            "fail" if wrong else "pass",
            first or f"{counted} elements written, all others untouched",
            step.name,
            where,
            Figure.of(wrong),
            Figure.of(0),
        )
    outputs = [buffer.name for buffer in view.results if buffer.role == "out"] or list(total)
    for name in total:
        reason = ""
        if view.bundle.slot(name).size == 0:
            reason = f"{name} has no elements in this case"
        elif total[name] == 0 and name in outputs:
            reason = f"no step of this case must write an element of {name}"
        if reason:
            yield Result("workspace", "inconclusive", reason, where=name)
    if not total:
        yield Result("workspace", "inconclusive", "the operator has neither outputs nor workspaces")


def _poisoned(view: View, step: Step, name: str) -> Array:
    """Where the poison of a step still lies. If a right result may equal it, that of the second arm, another one, must
    still lie there too."""
    poisoned = view.poisoned(step, name)
    if is_ambiguous(view.buffers[name]):
        for again in (one for one in view.again if one.name == step.name):
            poisoned = poisoned & view.poisoned(again, name)
    return poisoned
