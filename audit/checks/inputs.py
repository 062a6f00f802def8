"""The launches do not change the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from audit import arena, sparse
from audit.arena import Snapshot
from audit.checks.result import Figure, Result
from audit.checks.view import Step, View


def inputs(view: View) -> Iterator[Result]:
    """After every step each input buffer still holds that step's inputs, byte for byte. Inputs too large to copy after
    every step are compared only after the last."""
    for name in (slot.name for slot in view.bundle.slots if slot.role in ("in", "constant") and slot.size == 0):
        yield Result("inputs", "inconclusive", f"the input {name} has no elements in this case", where=name)
    for step in view.steps:
        snapshots = {
            name: snapshot
            for name, snapshot in step.snapshots.items()
            if view.bundle.slot(name).role in ("in", "constant")
        }
        if step is view.steps[-1]:
            snapshots = {**snapshots, **view.final_inputs}
        failures = (result for name, snapshot in snapshots.items() if (result := _failure(view, step, name, snapshot)))
        yield next(failures, Result("inputs", "pass", f"{len(snapshots)} input buffers unchanged", step.name))


def _failure(view: View, step: Step, name: str, snapshot: Snapshot) -> Result | None:
    expected = arena.input_bytes(view.buffers[name], view.case, step.inputs)
    changed, first = 0, 0
    for positions in sparse.differing(snapshot.data, expected):
        first = first if changed else int(positions[0])
        changed += len(positions)
    if not changed:
        return None
    return Result(
        "inputs",
        "fail",
        f"{changed} bytes of the input {name} were changed",
        step.name,
        view.element(name, view.buffers[name].element_at(first)),
        Figure.of(changed),
        Figure.of(0),
    )
