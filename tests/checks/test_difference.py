"""How much differs: measured by hand, for every kind of element, and for NaN, infinity and zeros."""

from __future__ import annotations

import numpy as np
import pytest

from audit.checks.bytes import compare_bytes
from audit.checks.difference import amount, largest_difference, ulp_text
from audit.checks.result import LargestDifference, Result
from audit.spec import Array, Buffer

from .planting import bare

NAN, INF = float("nan"), float("inf")


def compared(dtype: str, mine: Array, theirs: Array, dims: str = "n=3") -> Result:
    left, right = bare(dtype, dims, mine), bare(dtype, dims, theirs)
    return compare_bytes(left, left.steps[0], right, right.steps[0], "bytes", "parent control")


def largest(result: Result) -> LargestDifference:
    (found,) = result.largest
    return found


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_the_largest_difference_and_the_largest_ulp_lie_where_they_lie() -> None:
    theirs = f32(1.0, 1000.0, 1e-3)
    mine = theirs.copy()
    mine[1] += 0.5  # the greatest, 8,192 ulp
    mine[2] = 1.1e-3  # the furthest in ulp
    found = largest(compared("f32", mine, theirs))
    assert (found.buffer, found.differing, found.absolute_at, found.ulp_at) == ("y", 2, "y[n=1]", "y[n=2]")
    assert found.absolute
    assert found.absolute.value == 0.5
    assert found.ulp == int(mine.view(np.int32)[2] - theirs.view(np.int32)[2])


def test_the_sentence_tells_it_before_the_first() -> None:
    mine, theirs = f32(1, 2, 3).reshape(3, 1), f32(1, 2, 3).reshape(3, 1)
    mine.view(np.uint32)[1:] += 1
    result = compared("f32", mine, theirs, "rows=3 n=1")
    assert result.detail == (
        "2 of 3 elements differ, by at most 2.38e-07 (1 ulp, y[rows=1, n=0]); "
        "the first y[rows=1, n=0] is 0x40000001, parent control has 0x40000000"
    )


def test_equal_bytes_have_no_difference() -> None:
    result = compared("f32", f32(1, NAN, INF), f32(1, NAN, INF))
    assert (result.verdict, result.largest, result.detail) == ("pass", (), "3 elements equal parent control")


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        ((NAN, 1, 1), (1, 1, 1), "1 of 3 elements differ, all with NaN on one side; the first y[n=0]"),
        ((NAN, 2, 1), (1, 1, 1), "differ, by at most 1 (8.39e+06 ulp, y[n=1]), 1 with NaN on one side;"),
        ((-NAN, 1, 1), (NAN, 1, 1), "1 of 3 elements differ, all with NaN on both sides;"),
        ((-0.0, 1, 1), (0.0, 1, 1), "1 of 3 elements differ, only in the sign of zero (y[n=0]);"),
        ((INF, 1, 1), (1, 1, 1), "1 of 3 elements differ, by at most inf (1.07e+09 ulp, y[n=0]);"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_named(mine: tuple[float, ...], theirs: tuple[float, ...], words: str) -> None:
    assert words in compared("f32", f32(*mine), f32(*theirs)).detail


@pytest.mark.parametrize(
    ("dtype", "kind", "mine", "theirs", "absolute"),
    [
        ("u8", np.uint8, 250, 3, 247),
        ("i32", np.int32, -(2**31), 2**31 - 1, 2**32 - 1),
        ("i64", np.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        ("u64", np.uint64, 0, 2**64 - 1, 2**64 - 1),
    ],
)
def test_integers_are_measured_without_ulp_and_without_overflow(
    dtype: str, kind: type[np.generic], mine: int, theirs: int, absolute: int
) -> None:
    found = largest(compared(dtype, np.array([mine, 1, 2], kind), np.array([theirs, 1, 2], kind)))
    assert found.absolute
    assert (found.absolute.value, found.ulp, found.ulp_at) == (float(absolute), None, "")
    assert amount([found]) == f"by at most {absolute:.3g} (y[n=0])"


def test_eight_and_sixty_four_bit_floats_have_ulps_too() -> None:
    one, next_one, nan = 0x38, 0x3A, 0x7F  # 1.0 and 1.25 in e4m3
    found = largest(compared("e4m3", np.array([next_one, nan, one], np.uint8), np.array([one, one, one], np.uint8)))
    assert found.absolute
    assert (found.absolute.value, found.ulp, found.nan_on_one_side) == (0.25, 2, 1)
    across = largest(compared("e4m3", np.array([one, 0, 0], np.uint8), np.array([one | 0x80, 0, 0], np.uint8)))
    assert across.ulp == 2 * one
    doubles = np.array([1.0, 2.0, -3.0])
    found = largest(compared("f64", np.nextafter(doubles, INF), doubles))
    assert (found.ulp, found.differing) == (1, 3)
    found = largest(compared("f64", -np.array([1e308, 1.0, 1.0]), np.array([1e308, 1.0, 1.0])))
    assert found.absolute
    assert (found.absolute.value, found.ulp) == (INF, 2**63 - 2)


def test_many_buffers_are_one_sentence() -> None:
    lse = Buffer("lse", "f32", "n=2", "workspace")
    left = bare("f32", "n=3", f32(1, 2, 3.5), (lse, f32(5, 1e-6)))
    right = bare("f32", "n=3", f32(1, 2, 3), (lse, f32(5, 1e-9)))
    result = compare_bytes(left, left.steps[0], right, right.steps[0], "bytes", "parent")
    assert [one.buffer for one in result.largest] == ["y", "lse"]
    assert (
        "2 of 5 elements differ, by at most 0.5 (y[n=2]) and 8.37e+07 ulp (lse[n=1]); the first y[n=2]" in result.detail
    )


def test_only_elements_that_differ_are_measured() -> None:
    view = bare("f32", "n=3", f32(1, 2, 3))
    at = np.array([2])
    found = largest_difference(view, "y", at, f32(4).view(np.uint32), f32(3).view(np.uint32))
    assert (found.differing, found.absolute_at) == (1, "y[n=2]")


def test_a_distance_is_exact_where_it_is_short() -> None:
    assert [ulp_text(distance) for distance in (1, 999_999, 2_159_795_487)] == ["1 ulp", "999,999 ulp", "2.16e+09 ulp"]
