"""Error and probe: one element outside its bound fails, by name; NaN never passes; dimensions have names."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from audit.bounds import RelL2
from audit.checks import View
from audit.checks.error import error, probe
from audit.spec import Bound, Measured, Probe

from .planting import changed, put, verdicts


def test_right_results_lie_within_the_bound(control: View) -> None:
    result, _ = error(control)
    assert (result.check, result.verdict, result.detail) == ("error:rel_l2(y)", "pass", "7 within the bound")


@pytest.mark.parametrize("value", [2.0, float("nan"), float("inf")])
def test_a_wrong_element_is_found_in_its_row_by_its_name(control: View, value: float) -> None:
    first, second = error(changed(control, put((5, 9), value)))
    assert (first.verdict, first.where, first.detail) == ("fail", "rows=5", "1 of 7 outside the bound")
    assert second.verdict == "pass"
    assert first.measured
    assert first.limit
    assert not first.measured.value <= first.limit.value


def test_the_worst_is_the_one_that_uses_most_of_its_limit(control: View) -> None:
    limits = np.full((7, 33), 1.0)
    limits[3, 4] = 0.1
    bound = Bound("own", lambda *_: Measured(np.full((7, 33), 0.05), limits, ("row", "column")), "")
    result, _ = error(replace(control, operator=replace(control.operator, bounds=[bound])))
    assert (result.verdict, result.where) == ("pass", "row=3, column=4")


def test_a_derived_array_has_no_names_of_its_own(control: View) -> None:
    operator = replace(
        control.operator, derived={"double": lambda _c, _i, got: 2 * got["y"]}, bounds=[RelL2("double", 1e-6, "twice")]
    )
    steps = [
        replace(step, references={"twice": {"double": 2 * step.references["fp64"]["y"]}}) for step in control.steps
    ]
    result, _ = error(replace(control, operator=operator, steps=steps))
    assert (result.check, result.verdict, result.where[:6]) == ("error:rel_l2(double)", "pass", "axis0=")


def test_a_missing_reference_and_a_missing_measure_are_inconclusive(control: View) -> None:
    operator = replace(control.operator, bounds=[RelL2("y", 1e-6, "exact")])
    assert verdicts(list(error(replace(control, operator=operator)))) == ["inconclusive", "inconclusive"]
    bare = replace(control, operator=replace(control.operator, bounds=[]), baseline_only=False)
    (result,) = error(bare)
    assert (result.verdict, result.detail) == ("inconclusive", "neither a parent nor a bound says what is right")


def test_a_probe_holds_its_closed_form(control: View) -> None:
    def expect(_case: object, _inputs: object, got: dict[str, np.ndarray]) -> Measured:
        off = np.abs(got["y"].astype(np.float64).sum(axis=1) - 1)
        return Measured(off, np.full(7, 1e-6), ("rows",))

    sums = Probe("sums", inputs=lambda _c, _r: {}, expect=expect)
    case = msgspec.structs.replace(control.case, probe="sums")
    probed = replace(control, case=case, operator=replace(control.operator, probes=[sums]))
    (result,) = probe(probed)
    assert (result.check, result.verdict) == ("probe:sums", "pass")
    (result,) = probe(changed(probed, put((1, 1), 5.0)))
    assert (result.verdict, result.where) == ("fail", "rows=1")
    assert list(probe(control)) == []
