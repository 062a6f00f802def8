"""Guards: a byte written before or behind a buffer is found in every execution, inputs included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audit.arena import Snapshot
from audit.checks import View
from audit.checks.guards import guards

from .planting import verdicts


def test_guards_are_intact(control: View) -> None:
    results = list(guards(control))
    assert verdicts(results) == ["pass"] * 4  # two steps, the second run, the inputs at the end
    assert results[0].detail == "guards of 2 buffers intact"


@pytest.mark.parametrize(
    ("at", "words"),
    [(-4, "first 4 bytes before the start of y (924 bytes)"), (924, "first 0 bytes past the end of y (924 bytes)")],
)
@pytest.mark.parametrize("execution", ["steps", "again"])
def test_a_broken_guard_is_found(control: View, execution: str, at: int, words: str) -> None:
    step, *others = getattr(control, execution)
    broken = replace(step, snapshots={**step.snapshots, "y": Snapshot(step.snapshots["y"].data, (at, at + 1))})
    results = list(guards(replace(control, **{execution: [broken, *others]})))
    (result,) = [result for result in results if result.verdict == "fail"]
    assert (result.where, result.step) == ("y", "live")
    assert result.detail == f"2 or more guard bytes overwritten around y; {words}"


def test_a_broken_guard_of_an_input_is_found(control: View) -> None:
    snapshot = Snapshot(control.steps[0].snapshots["x"].data, (-1,))
    *_, last = guards(replace(control, final_inputs={"x": snapshot}))
    assert (last.verdict, last.where) == ("fail", "x")
