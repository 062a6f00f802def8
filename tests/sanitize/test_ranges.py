"""Threads and blocks as boxes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.sanitize.ranges import Point, ranges

points = st.sets(st.tuples(*[st.integers(0, 3)] * 3), max_size=20)


@pytest.mark.parametrize(
    ("given_points", "text"),
    [
        (set(), ""),
        ({(3, 0, 0)}, "(3,0,0)"),
        ({(x, 0, 0) for x in range(32)}, "(0..31,0,0)"),
        ({(x, y, z) for x in range(8) for y in range(4) for z in range(2)}, "(0..7,0..3,0..1)"),
        ({(0, 0, 0), (1, 0, 0), (5, 0, 0)}, "(0..1,0,0) (5,0,0)"),
        ({(0, 0, 0), (0, 2, 0)}, "(0,0,0) (0,2,0)"),
        ({(0, 0, 0), (0, 0, 2)}, "(0,0,0) (0,0,2)"),
        ({(2 * x, 0, 0) for x in range(9)}, "(0,0,0) (2,0,0) (4,0,0) (6,0,0) (8,0,0) (10,0,0) and 3 more"),
    ],
)
def test_examples(given_points: set[Point], text: str) -> None:
    assert ranges(given_points) == text


@given(points)
def test_the_boxes_hold_the_points_and_no_other(given_points: set[Point]) -> None:
    text = ranges(given_points)
    held: list[Point] = []
    for box in re.findall(r"\(([^)]*)\)", text):
        spans = [(int(span.split("..")[0]), int(span.split("..")[-1])) for span in box.split(",")]
        (x0, x1), (y0, y1), (z0, z1) = spans
        held += [(x, y, z) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1) for z in range(z0, z1 + 1)]
    assert len(held) == len(set(held))
    assert set(held) <= given_points
    if "more" not in text:
        assert set(held) == given_points
