"""Finite: NaN and infinity are found in every kind of float, and only where something must be written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.checks import View
from audit.checks.finite import finite

from .planting import bare, changed, put, verdicts


def test_finite_results_pass(control: View) -> None:
    assert verdicts(list(finite(control))) == ["pass", "pass"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_found(control: View, value: float) -> None:
    first, second = finite(changed(control, put((4, 7), value)))
    assert (first.verdict, first.where, second.verdict) == ("fail", "y[rows=4, n=7]", "pass")
    assert first.detail == "1 elements are NaN or infinite, the first y[rows=4, n=7]"


def test_poison_outside_the_written_region_is_not_looked_at(control: View) -> None:
    mask = np.ones((7, 33), bool)
    mask[4, 7] = False
    operator = replace(control.operator, written=lambda _c, _i: {"y": mask})
    wrong = replace(changed(control, put((4, 7), float("nan"))), operator=operator)
    assert verdicts(list(finite(wrong))) == ["pass", "pass"]


@pytest.mark.parametrize(
    ("dtype", "values", "verdict"),
    [
        ("e4m3", np.array([0x38, 0xFF], np.uint8), "fail"),  # the NaN of e4m3
        ("u8", np.array([0x38, 0xFF], np.uint8), "pass"),  # the same bytes as integers
        ("e5m2", np.array([0x3C, 0xFC], np.uint8), "fail"),  # -infinity
        ("bf16", np.array([0x3F80, 0x7FC0], np.uint16), "fail"),
        ("e2m1", np.array([0x1, 0xF], np.uint8), "pass"),  # every code is a finite number
        ("i4", np.array([0x1, 0xF], np.uint8), "pass"),
        ("bool", np.array([True, False]), "pass"),
        ("bool", np.array([1, 2], np.uint8), "fail"),
        ("f16", np.array([1, np.inf], np.float16), "fail"),
        ("f64", np.array([1, 2.0]), "pass"),
    ],
)
def test_every_kind_of_element(dtype: str, values: np.ndarray, verdict: str) -> None:
    (result,) = finite(bare(dtype, "n=2", values))
    assert (result.verdict, result.where) == (verdict, "y[n=1]" if verdict == "fail" else "")
