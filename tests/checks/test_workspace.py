"""Workspace: no poison where something must be written, and nothing but poison elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from audit import arena
from audit.checks import View
from audit.checks.workspace import steps_to_repeat, workspace
from audit.spec import Array

from .planting import changed, verdicts


def poison(view: View) -> Array:
    """What the first step's `y` held before it was written, f32[7, 33]."""
    word = arena.poison_array(view.bundle.slot("y"), view.steps[0].poison["y"])
    return np.asarray(word.view(np.float32).reshape(7, 33))


def masked(view: View) -> View:
    """The view under a contract that leaves the last row unwritten."""
    mask = np.ones((7, 33), bool)
    mask[6] = False
    return replace(view, operator=replace(view.operator, written=lambda _c, _i: {"y": mask}))


def test_what_was_written_holds_no_poison(control: View) -> None:
    results = list(workspace(control))
    assert verdicts(results) == ["pass", "pass"]
    assert results[0].detail == "231 elements written, all others untouched"


def unwritten_in(view: View, *arms: str) -> View:
    """The view with the poison of one element of `y` left as it was in the first step of these arms."""
    for arm in arms:
        first, *others = getattr(view, arm)
        data = first.snapshots["y"].data.copy()
        word = arena.poison_array(view.bundle.slot("y"), first.poison["y"])
        data.view(np.uint32)[2 * 33 + 5] = word.view(np.uint32)[2 * 33 + 5]
        step = replace(first, snapshots={**first.snapshots, "y": arena.Snapshot(data, ())})
        view = replace(view, **{arm: [step, *others]})
    return view


def test_an_element_that_was_not_written_is_found(control: View) -> None:
    result, other = workspace(unwritten_in(control, "steps", "again"))
    assert (result.verdict, result.where, other.verdict) == ("fail", "y[rows=2, n=5]", "pass")
    assert result.detail == "1 elements of y not written, the first y[rows=2, n=5]"


def test_a_right_result_may_equal_the_poison_of_one_arm(control: View) -> None:
    assert verdicts(workspace(unwritten_in(control, "steps"))) == ["pass", "pass"]
    assert verdicts(workspace(unwritten_in(control, "again"))) == ["pass", "pass"]


def test_steps_that_left_their_poison_run_again(control: View) -> None:
    assert steps_to_repeat(control) == ("live",)
    first, last = control.steps
    again = replace(control, steps=[last, first])
    assert steps_to_repeat(unwritten_in(again, "steps")) == ("restore",)
    assert steps_to_repeat(replace(again, steps=[last, unwritten_in(control, "steps").steps[0]])) == ("restore", "live")


def test_an_element_that_must_not_be_written_is_found(control: View) -> None:
    def leave_row(array: Array) -> None:
        array.view(np.uint32)[6] = poison(control).view(np.uint32)[6]

    assert next(iter(workspace(masked(changed(control, leave_row))))).verdict == "pass"

    def leave_all_but_one(array: Array) -> None:
        leave_row(array)
        array[6, 3] = 0.0

    result = next(iter(workspace(masked(changed(control, leave_all_but_one)))))
    assert (result.verdict, result.where) == ("fail", "y[rows=6, n=3]")
    assert "1 elements of y written, must not be" in result.detail
