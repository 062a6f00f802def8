"""A kernel writes every element that the contract requires and no other; the others keep their poison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit.checks.result import Figure, Result
from audit.checks.view import Step, View
from audit.spec import Array


def workspace(view: View) -> Iterator[Result]:
    """Outputs and workspaces: no poison inside the written region, only poison outside it.

    An element is unwritten where it kept its poison in arms of different poison.
    """
    total = dict.fromkeys((buffer.name for buffer in view.results), 0)
    for step in view.steps:
        wrong, where, counted, first = 0, "", 0, ""
        for name, written in view.written(step).items():
            counted += int(written.sum())
            total[name] += int(written.sum())
            for bad, what in (
                (_unwritten(view, step, name, written), "not written"),
                (~written & ~view.poisoned(step, name), "written, must not be"),
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
    outputs = [buffer.name for buffer in view.results if buffer.role in ("out", "inout")] or list(total)
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


def steps_to_repeat(view: View) -> tuple[str, ...]:
    """The steps that run again with another poison: the first, and each that left an element equal to its poison where
    the contract requires one to be written. A right result may equal one poison, but not two."""
    return tuple(
        step.name
        for index, step in enumerate(view.steps)
        if index == 0
        or any(
            bool((written & view.poisoned(step, name)).any())
            for name, written in view.written(step).items()
            if view.buffers[name].role != "inout"
        )
    )


def _unwritten(view: View, step: Step, name: str, written: Array) -> Array:
    """Where an element that must be written kept its poison in every arm. That of an `inout` buffer cannot be seen."""
    if view.buffers[name].role == "inout":
        return np.zeros_like(written)
    kept = written & view.poisoned(step, name)
    for again in (one for one in view.again if one.name == step.name):
        kept = kept & view.poisoned(again, name)
    return kept
