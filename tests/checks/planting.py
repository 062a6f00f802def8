"""Faults planted in what a view holds, and views of a buffer that no kernel has to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from audit import arena
from audit.arena import Snapshot
from audit.checks import Result, Step, View
from audit.elements import bytes_in
from audit.spec import Array, Buffer, Case, Operator, Source, Variant


def changed(view: View, change: Callable[[Array], None], name: str = "y", step: int = 0) -> View:
    """The view with `change` applied to a copy of one buffer after one step, in the buffer's dtype and dimensions."""
    steps = list(view.steps)
    steps[step] = changed_step(view, steps[step], change, name)
    return replace(view, steps=steps)


def changed_step(view: View, step: Step, change: Callable[[Array], None], name: str = "y") -> Step:
    """One step with `change` applied to a copy of one buffer."""
    before = step.snapshots[name]
    snapshot = Snapshot(before.data.copy(), before.broken_guards)
    change(arena.typed(snapshot, view.buffers[name], view.case))
    return replace(step, snapshots={**step.snapshots, name: snapshot})


def put(index: tuple[int, ...], value: float) -> Callable[[Array], None]:
    """A change of one element."""

    def change(array: Array) -> None:
        array[index] = value

    return change


def bare(dtype: str, dims: str, values: Array, *more: tuple[Buffer, Array]) -> View:
    """A view of outputs that hold these values after their one step; `y` has this dtype and these dimensions."""
    held = [(Buffer("y", dtype, dims, "out"), values), *more]
    variant = Variant("control", Source("none.cu"), launches=lambda _: [])
    operator = Operator(
        "bare", axes=[], buffers=lambda _: [buffer for buffer, _ in held], inputs=lambda _c, _r: {}, variants=[variant]
    )
    snapshots = {
        buffer.name: Snapshot(bytes_in(np.ascontiguousarray(array), buffer.dtype), ()) for buffer, array in held
    }
    step = Step("live", {}, snapshots, {}, {})
    return View(operator, variant, Case("bare", "bare", {}, seed=1), None, None, None, [step], [], {}, None)  # type: ignore[arg-type]


def verdicts(results: list[Result]) -> list[str]:
    """The verdicts, in order."""
    return [result.verdict for result in results]
