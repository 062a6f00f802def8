"""Inputs: a byte of an input that changed is found, in the step in which it changed."""

from __future__ import annotations

from dataclasses import replace

from audit.checks import View
from audit.checks.inputs import inputs

from .planting import changed, put, verdicts


def test_inputs_are_unchanged(control: View) -> None:
    results = list(inputs(control))
    assert verdicts(results) == ["pass", "pass"]
    assert results[0].detail == "1 input buffers unchanged"


def test_an_input_that_changed_is_found_in_its_step(control: View) -> None:
    first, second = inputs(changed(control, put((2, 3), -1.5), name="x"))
    assert (first.verdict, first.step, first.where, second.verdict) == ("fail", "live", "x[rows=2, n=3]", "pass")
    assert first.detail.endswith("bytes of the input x were changed")


def test_a_large_input_is_looked_at_after_the_last_step(control: View) -> None:
    """It has a snapshot at the end alone."""
    wrong = changed(control, put((0, 0), -1.5), name="x").steps[0].snapshots["x"]
    bare = [replace(step, snapshots={"y": step.snapshots["y"]}) for step in control.steps]
    first, last = inputs(replace(control, steps=bare, final_inputs={"x": wrong}))
    assert (first.verdict, last.verdict, last.where) == ("pass", "fail", "x[rows=0, n=0]")
