"""Bytes and repeat find an element that differs from the parent or from an earlier step, where it must be written."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from audit.backends.outcome import Crashed
from audit.checks import View
from audit.checks.bytes import bytes_, repeat, tallied_once
from audit.checks.result import Result
from audit.checks.tally import tally

from .planting import changed, changed_step, put, verdicts


def test_equal_bytes_pass_and_a_variant_without_a_parent_is_not_asked(control: View, fast: View) -> None:
    assert verdicts(list(bytes_(fast))) == ["pass", "pass"]
    assert list(bytes_(control)) == []


def test_one_element_that_differs_is_found(fast: View) -> None:
    first, second = bytes_(changed(fast, put((3, 17), 0.25), step=1))
    assert (first.verdict, second.verdict, second.step, second.where) == ("pass", "fail", "restore", "y[rows=3, n=17]")
    assert second.measured
    assert second.measured.value == 1
    assert sum(second.differences[0].values()) == 1
    assert second.detail.startswith("1 of 231 elements differ, by at most ")


def test_what_the_contract_leaves_unwritten_is_not_compared(fast: View) -> None:
    mask = np.ones((7, 33), bool)
    mask[3, 17] = False
    operator = replace(fast.operator, written=lambda _c, _i: {"y": mask})
    assert verdicts(list(bytes_(replace(changed(fast, put((3, 17), 0.25)), operator=operator)))) == ["pass", "pass"]


def test_a_parent_that_crashed_is_nothing_to_compare_with(fast: View) -> None:
    assert fast.parent
    (result,) = bytes_(replace(fast, parent=replace(fast.parent, outcome=Crashed("signal", "11", 0.1))))
    assert (result.verdict, result.detail) == ("inconclusive", "the parent control did not complete")


def test_restore_and_the_second_run_must_repeat_the_first(fast: View) -> None:
    assert verdicts(list(repeat(fast))) == ["pass", "pass"]
    restored, again = repeat(changed(fast, put((0, 0), 0.5), step=1))
    assert (restored.verdict, restored.where, again.verdict) == ("fail", "y[rows=0, n=0]", "pass")
    other = replace(fast, again=[changed_step(fast, fast.again[0], put((6, 32), 0.5))])
    restored, again = repeat(other)
    assert (restored.verdict, again.verdict, again.where) == ("pass", "fail", "y[rows=6, n=32]")
    assert "live under another schedule has 0x" in again.detail


def test_only_the_first_failing_result_keeps_its_tallies() -> None:
    found = tally("y", [("a", 3)], np.ones(3, bool))
    assert found
    fails = Result("bytes", "fail", "", differences=(found,))
    kept = [bool(each.differences) for each in tallied_once([Result("bytes", "pass", ""), fails, fails])]
    assert kept == [False, True, False]


@pytest.mark.parametrize("step", [0, 1])
def test_every_failing_step_says_how_much(fast: View, step: int) -> None:
    wrong = changed(changed(fast, put((1, 1), 0.5), step=0), put((2, 2), 0.5), step=1)
    result = list(bytes_(wrong))[step]
    assert [one.absolute_at for one in result.largest] == [("y[rows=1, n=1]", "y[rows=2, n=2]")[step]]
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
