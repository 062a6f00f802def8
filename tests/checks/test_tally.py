"""Tallies: counts at the leading dimensions, few enough to keep."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from audit.checks.tally import Tally, tally


def test_counts_lie_where_the_differences_do() -> None:
    differ = np.random.default_rng(3).random((4, 3, 5)) < 0.2
    found = tally("y", [("a", 4), ("b", 3), ("c", 5)], differ)
    assert found
    assert (found.dims, found.extents, found.each) == (("a", "b", "c"), (4, 3, 5), 1)
    assert found.values() == tuple(differ.ravel().astype(int).tolist())


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((80, 8, 6, 256), 3),
        ((80, 8, 6, 64), 3),
        ((5, 4, 3, 64), 3),
        ((80, 6, 6), 3),
        ((6, 3, 64), 2),
        ((7, 33), 1),
        ((4096,), 1),
        ((4096, 1, 1), 3),
        ((600, 8, 8), 1),
    ],
)
def test_as_many_dimensions_as_have_few_places(shape: tuple[int, ...], kept: int) -> None:
    extents = [(f"d{at}", size) for at, size in enumerate(shape)]
    differ = np.zeros(shape, bool)
    differ[(0,) * len(shape)] = True
    differ[(-1,) * len(shape)] = True
    found = tally("y", extents, differ)
    assert found
    assert found.extents == shape[:kept]
    values = found.values()
    assert (values[0], values[-1], sum(values)) == (1, 1, 2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Tally) == found


def test_wide_counts_survive() -> None:
    found = tally("y", [("a", 2), ("b", 70_000)], np.ones((2, 70_000), bool))
    assert found
    assert (found.values(), len(found.counts)) == ((70_000, 70_000), 8)


def test_nothing_is_kept_where_nothing_differs_or_all_is_too_fine() -> None:
    assert tally("y", [("a", 3)], np.zeros(3, bool)) is None
    assert tally("y", [("a", 5000)], np.ones(5000, bool)) is None
    assert tally("y", [("a", 0)], np.zeros(0, bool)) is None
