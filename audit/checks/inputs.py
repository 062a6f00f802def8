"""The inputs are what they were before the launches."""

from __future__ import annotations

from collections.abc import Iterator

from audit import arena, sparse
from audit.arena import Snapshot
from audit.checks.result import Figure, Result
from audit.checks.view import Step, View


def inputs(view: View) -> Iterator[Result]:
    """After every step each input buffer still holds, byte for byte, that step's inputs; those too large to be copied
    after every step are looked at after the last."""
    for step in view.steps:
        kept = {name: snapshot for name, snapshot in step.snapshots.items() if view.buffers[name].role == "in"}
        if step is view.steps[-1]:
            kept = {**kept, **view.final_inputs}
        changed = (result for name, snapshot in kept.items() if (result := _changed(view, step, name, snapshot)))
        yield next(changed, Result("inputs", "pass", f"{len(kept)} input buffers unchanged", step.name))


def _changed(view: View, step: Step, name: str, snapshot: Snapshot) -> Result | None:
    expected = arena.input_array(view.buffers[name], view.case, step.inputs)
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
        view.place(name, first // view.buffers[name].numpy_dtype().itemsize),
        Figure.of(changed),
        Figure.of(0),
    )
