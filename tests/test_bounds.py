"""Bounds for any operator: the relative L2 error, row by row, blind to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from audit.bounds import RelL2, relative_l2
from audit.spec import Case, Measured

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
