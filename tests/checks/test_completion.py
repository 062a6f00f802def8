"""Completion: every planned launch was seen, no other one was, and the program ended within its limit."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from audit.backends.outcome import Completed, Crashed, TimedOut
from audit.checks import View
from audit.checks.completion import completion

from .planting import verdicts


def outcome(view: View) -> Completed:
    assert isinstance(view.outcome, Completed)
    return view.outcome


def test_all_planned_launches_were_seen(control: View) -> None:
    assert verdicts(list(completion(control))) == ["pass", "pass"]  # its own, and those of the second run
    assert len(outcome(control).launches) == 2


def test_a_launch_that_was_not_seen_fails(control: View) -> None:
    short = msgspec.structs.replace(outcome(control), launches=outcome(control).launches[:-1])
    result, _ = completion(replace(control, outcome=short))
    assert result.verdict == "fail"
    assert result.detail.startswith("1 launches seen, 2 planned")
    assert result.measured
    assert result.limit
    assert (result.measured.value, result.limit.value) == (1, 2)


def test_a_launch_of_another_grid_or_too_many_fail(control: View) -> None:
    first, second = outcome(control).launches
    for launches in ((msgspec.structs.replace(first, blocks=8), second), (first, first, second)):
        changed = msgspec.structs.replace(outcome(control), launches=launches)
        assert verdicts(list(completion(replace(control, outcome=changed)))) == ["fail", "pass"]


def test_a_launch_missing_in_the_second_run_fails(control: View) -> None:
    _, again = completion(replace(control, launched={"again": ()}))
    assert (again.verdict, again.detail.partition(";")[0]) == ("fail", "0 launches seen, 1 planned (again)")


def test_a_crash_and_a_time_out_are_findings(control: View) -> None:
    (crashed,) = completion(replace(control, outcome=Crashed("memory", "address 0x10", 0.1)))
    assert (crashed.verdict, crashed.detail) == ("fail", "crashed (memory): address 0x10")
    (late,) = completion(replace(control, outcome=TimedOut(3, "step live")))
    assert (late.verdict, late.detail) == ("fail", "time-out: killed after 3 s; last line reported: step live")
