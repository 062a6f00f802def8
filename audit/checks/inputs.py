"""The inputs are what they were before the launches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit import arena
from audit.checks.result import Figure, Result
from audit.checks.view import View


def inputs(view: View) -> Iterator[Result]:
    """After the last step every input buffer still holds, byte for byte, what the last step's inputs were."""
    if not view.steps:
        return
    for name, snapshot in view.final_inputs.items():
        expected = arena.encode_input(view.buffers[name], view.case, view.steps[-1].inputs)
        if changed := np.flatnonzero(snapshot.data != np.frombuffer(expected, np.uint8)).tolist():
            element = changed[0] // view.buffers[name].numpy_dtype().itemsize
            yield Result(
                "inputs",
                "fail",
                f"{len(changed)} bytes of the input {name} were changed",
                where=view.place(name, element),
                measured=Figure.of(len(changed)),
                limit=Figure.of(0),
            )
            return
    yield Result("inputs", "pass", f"{len(view.final_inputs)} input buffers unchanged")
