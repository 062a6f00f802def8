"""Figures keep their bits through JSON, and the worst verdict wins."""

from __future__ import annotations

import math

import msgspec
import pytest

from audit.checks.result import Figure, Verdict, worst


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-300, 0.1, math.inf, -math.inf, math.nan])
def test_a_figure_survives_json(value: float) -> None:
    found = msgspec.json.decode(msgspec.json.encode(Figure.of(value)), type=Figure).value
    assert (
        math.isnan(found) if math.isnan(value) else (found, math.copysign(1, found)) == (value, math.copysign(1, value))
    )


def test_a_figure_can_be_read() -> None:
    assert [Figure.of(value).text for value in (900, 0.80787412, 1e-6)] == ["900", "0.807874", "1e-06"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "inconclusive"),
        (["pass"], "pass"),
        (["pass", "inconclusive"], "inconclusive"),
        (["inconclusive", "fail", "pass"], "fail"),
    ],
)
def test_a_finding_outweighs_inconclusive_which_outweighs_pass(verdicts: list[Verdict], expected: Verdict) -> None:
    assert worst(verdicts) == expected
