"""The inputs are what they were before the launches."""

from __future__ import annotations

from collections.abc import Iterator

from audit import arena, sparse
from audit.checks.result import Figure, Result
from audit.checks.view import View


def inputs(view: View) -> Iterator[Result]:
    """After the last step every input buffer still holds, byte for byte, what the last step's inputs were."""
    if not view.steps:
        return
    for name, snapshot in view.final_inputs.items():
        expected = arena.input_array(view.buffers[name], view.case, view.steps[-1].inputs)
        changed, first = 0, 0
        for positions in sparse.differing(snapshot.data, expected):
            first = first if changed else int(positions[0])
            changed += len(positions)
        if changed:
            yield Result(
                "inputs",
                "fail",
                f"{changed} bytes of the input {name} were changed",
                where=view.place(name, first // view.buffers[name].numpy_dtype().itemsize),
                measured=Figure.of(changed),
                limit=Figure.of(0),
            )
            return
    yield Result("inputs", "pass", f"{len(view.final_inputs)} input buffers unchanged")
