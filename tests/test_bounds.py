"""Bounds for any operator: the relative L2 error, row by row, blind to nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from audit.bounds import AllClose, Cosine, Forward, MaxUlps, RelL2, relative_l2
from audit.errors import ProjectError
from audit.formats import encoded
from audit.spec import DTYPES, Array, Bound, Case, Measured

CASE = Case("s", "op", {"rows": 2, "n": 2})


def measured(got: object, expected: object, limit: float = 0.1) -> Measured:
    bound = RelL2("y", limit)
    found = bound.measure(CASE, {}, {"y": np.asarray(got, np.float32)}, {"y": np.asarray(expected, np.float64)})
    assert found is not None
    return found


def test_it_is_the_norm_of_the_error_over_the_norm_of_what_was_expected() -> None:
    np.testing.assert_allclose(relative_l2(np.array([[3.0, 5.0]]), np.array([[3.0, 4.0]])), [1 / 5])


def test_where_nothing_is_expected_it_is_the_norm_of_what_came() -> None:
    np.testing.assert_allclose(relative_l2(np.array([[3.0, 4.0], [0.0, 0.0]]), np.zeros((2, 2))), [5.0, 0.0])


def test_each_row_is_measured_by_itself() -> None:
    found = measured([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    assert found.value.tolist() == [0.0, 1.0]
    assert found.limit.tolist() == [0.1, 0.1]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_never_within(wrong: float) -> None:
    with np.errstate(all="ignore"):
        found = measured([[1.0, wrong]], [[1.0, 0.0]], limit=1e30)
    assert not (found.value <= found.limit).any()


def test_it_names_itself_and_its_reference() -> None:
    assert (RelL2("y", 1e-6).name, RelL2("y", 1e-6).reference) == ("rel_l2(y)", "fp64")
    assert RelL2("y", 1e-6, "exact").reference == "exact"


def holds(bound: Bound, got: object, expected: object, **more: object) -> bool:
    """Whether a result passes; `more` are further arrays of the reference."""
    arrays = {"y": np.asarray(expected, np.float64), **{name: np.asarray(each) for name, each in more.items()}}
    with np.errstate(all="ignore"):
        found = bound.measure(CASE, {}, {"y": np.asarray(got)}, arrays)
    assert found is not None
    assert found.value.shape == found.limit.shape
    return bool((found.value <= found.limit).all())


NARROW = {"f16": 1e-3, "bf16": 1.6e-2, "f32": 1.3e-6, "f64": 1e-7, "e4m3": 2.0**-4, "e5m2": 2.0**-3}


@pytest.mark.parametrize(("dtype", "rtol"), NARROW.items())
@pytest.mark.parametrize("make", [RelL2, AllClose, MaxUlps, Cosine])
def test_every_bound_has_defaults_for_every_dtype(make: Callable[[str], Bound], dtype: str, rtol: float) -> None:
    rng = np.random.default_rng(3)
    right = encoded(dtype, rng.normal(0, 1, (5, 32))).astype(np.float64)
    right[0, 0] *= 1 + rtol / 4
    stored = encoded(dtype, right).view(DTYPES[dtype])
    assert holds(make("y"), stored, right)
    wrong = stored.copy()
    wrong[2] = encoded(dtype, -right[2]).view(DTYPES[dtype])
    assert not holds(make("y"), wrong, right)
    wrong[2] = np.nan
    assert not holds(make("y"), wrong, right)
    assert rtol > 0


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "e4m3", "e5m2"])
def test_ulps_are_counted_in_the_dtype_of_the_result(dtype: str) -> None:
    one = encoded(dtype, np.ones(3)).view(DTYPES[dtype])
    codes = one.view(f"u{one.itemsize}").copy()
    codes[1] += 2
    assert holds(MaxUlps("y", 2), codes.view(one.dtype), np.ones(3))
    assert not holds(MaxUlps("y", 1), codes.view(one.dtype), np.ones(3))


def test_infinity_passes_only_where_it_is_expected() -> None:
    for bound in (AllClose("y", 1e30, 1e30), MaxUlps("y", 10)):
        assert holds(bound, np.array([np.inf, -np.inf], np.float32), [np.inf, -np.inf])
        assert not holds(bound, np.array([-np.inf], np.float32), [np.inf])
        assert not holds(bound, np.array([np.inf], np.float32), [1.0])
        assert not holds(bound, np.array([3e38], np.float32), [np.inf])
        assert not holds(bound, np.array([np.nan], np.float32), [np.nan])


def test_integers_must_be_equal_by_default_even_where_f64_cannot_tell_them_apart() -> None:
    assert holds(AllClose("y"), np.array([3, 4], np.int32), [3, 4])
    assert not holds(AllClose("y"), np.array([3, 4], np.int32), [3, 5])
    assert holds(AllClose("y", atol=1), np.array([3, 4], np.int32), [3, 5])
    found = MaxUlps("y").measure(CASE, {}, {"y": np.array([2**53 + 1])}, {"y": np.array([2**53])})
    assert found is not None
    assert not (found.value <= found.limit).any()


def test_a_scale_leaves_the_angle_and_nothing_else_does() -> None:
    rng = np.random.default_rng(4)
    right = rng.normal(0, 1, (3, 16))
    assert holds(Cosine("y"), (2.5 * right).astype(np.float32), right)
    assert not holds(Cosine("y"), np.roll(right, 1, axis=1).astype(np.float32), right)
    assert not holds(Cosine("y"), np.zeros((3, 16), np.float32), right)
    assert holds(Cosine("y"), np.zeros((3, 16), np.float32), np.zeros((3, 16)))


def reordered_sums(terms: Array, dtype: type[np.floating[Any]], rng: np.random.Generator) -> list[Array]:
    """One sum in several orders: in turn, from the last, shuffled, in pairs."""
    t = terms.astype(dtype)
    mixed = t[:, rng.permutation(t.shape[1])]
    pairs = t
    while pairs.shape[1] > 1:
        pairs = np.concatenate([pairs[:, 0:-1:2] + pairs[:, 1::2], pairs[:, pairs.shape[1] // 2 * 2 :]], axis=1)
    return [*(np.cumsum(each, axis=1, dtype=dtype)[:, -1] for each in (t, t[:, ::-1], mixed)), pairs[:, 0]]


@pytest.mark.parametrize("accumulate", ["f16", "f32"])
@pytest.mark.parametrize("n", [1, 33, 500])
def test_forward_admits_every_order_of_a_sum_and_no_lost_term(accumulate: str, n: int) -> None:
    kind = np.float16 if accumulate == "f16" else np.float32
    rng = np.random.default_rng(n)
    terms = rng.normal(0, 1, (50, n)).astype(kind)
    right, size = terms.astype(np.float64).sum(axis=1), np.abs(terms.astype(np.float64)).sum(axis=1)
    bound = Forward("y", lambda _case: n, accumulate)
    for got in reordered_sums(terms, kind, rng):
        assert holds(bound, got, right, y_magnitude=size)
    if accumulate == "f32" or n == 1:
        lost = (right - terms[:, 0].astype(np.float64)).astype(kind)
        assert not holds(bound, lost, right, y_magnitude=size)


def test_forward_says_what_to_return_and_how_deep_is_too_deep() -> None:
    with pytest.raises(ProjectError, match=r"expected the array 'y_magnitude' from reference.*abs\(a\) @ abs\(b\)"):
        holds(Forward("y", 4), np.ones(2, np.float32), [1.0, 1.0])
    with pytest.raises(ProjectError, match="expected a depth from 0 to 1,024 for sums in f16"):
        holds(Forward("y", 5000, "f16"), np.ones(1, np.float16), [1.0], y_magnitude=[1.0])
    with pytest.raises(ProjectError, match="accumulate: expected one of f64, f32"):
        Forward("y", 4, "fp32")
    assert holds(Forward("y", 4, magnitude="m"), np.ones(1, np.float32), [1.0], m=[1.0])


def test_a_shape_that_differs_is_refused() -> None:
    for make in (RelL2, AllClose, MaxUlps, Cosine):
        with pytest.raises(ProjectError, match=r"y: expected the reference to have its shape \(2, 3\), but got \(3,\)"):
            holds(make("y"), np.ones((2, 3), np.float32), np.ones(3))


def test_a_scalar_result_is_measured() -> None:
    for make in (RelL2, AllClose, MaxUlps, Cosine):
        assert holds(make("y"), np.float32(2), 2.0)
        assert not holds(make("y"), np.float32(-2), 2.0)
