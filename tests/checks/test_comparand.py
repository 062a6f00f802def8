"""A bound that compares a result with a reference of another shape is refused; one that says what repeats is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from audit.checks.comparand import comparands, plain
from audit.spec import Array

Compare = Callable[[Array, Array], object]
ROWS, N = 7, 33
COMPARISONS: dict[str, Compare] = {
    "difference": lambda got, want: np.abs(got - want),
    "converted": lambda got, want: got.astype(np.float64) - want,
    "other way": lambda got, want: want - got,
    "subtract": np.subtract,
    "equal": lambda got, want: (got != want) * 1.0,
    "greater": lambda got, want: np.where(got > want, 1.0, 0.0),
    "quotient": lambda got, want: got / want - 1,
    "isclose": np.isclose,
    "norm": lambda got, want: np.linalg.norm(got - want, axis=-1),
    "largest": lambda got, want: np.max(np.abs(got - want)),
    "copy": lambda got, want: got.copy() - want.copy(),
    "transposed": lambda got, want: got.T - want.T,
    "flat view": lambda got, want: got[:] - want[...],
    "in place": lambda got, want: np.subtract(got, want, out=np.empty(np.broadcast_shapes(got.shape, want.shape))),
}
SHAPES = [
    ((ROWS, N), (N,)), ((ROWS, N), (1, N)), ((ROWS, N), (ROWS, 1)), ((N,), (ROWS, N)), ((N,), (N, 1)), ((N,), ()),
    ((N,), (1,)),
]  # fmt: skip


def compared(compare: Compare, got: tuple[int, ...], want: tuple[int, ...]) -> object:
    results = comparands({"y": np.ones(got, np.float32)}, "result")
    references = comparands({"mean": np.ones(want)}, "reference")
    return compare(results["y"], references["mean"])


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(("got", "want"), SHAPES)
def test_other_shapes_are_refused(name: str, got: tuple[int, ...], want: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected .* to have one shape, but got .* and .*; give the reference"):
        compared(COMPARISONS[name], got, want)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("shape", [(ROWS, N), (N,), (1,)])
def test_one_shape_is_compared_as_ever(name: str, shape: tuple[int, ...]) -> None:
    with np.errstate(all="ignore"):
        found = compared(COMPARISONS[name], shape, shape)
        assert type(found) in (np.ndarray, np.float64, np.bool_, bool)
        assert np.array_equal(
            np.asarray(found), np.asarray(COMPARISONS[name](np.ones(shape, np.float32), np.ones(shape)))
        )


@pytest.mark.parametrize(
    "compare",
    [
        lambda got, want: got - want[None, :],
        lambda got, want: got - want.reshape(1, N),
        lambda got, want: got - np.broadcast_to(want, got.shape),
        lambda got, want: np.abs(got - np.expand_dims(want, 0)),
        lambda got, want: got[0] - want,
        lambda got, want: got.sum(axis=0) - want,
        lambda got, want: got * want,
        lambda got, want: got - (want + 1.0),
        lambda got, want: got - np.arange(N) + 0 * want,
    ],
)
def test_what_is_meant_is_written(compare: Compare) -> None:
    assert isinstance(compared(compare, (ROWS, N), (N,)), np.ndarray)


def test_a_side_alone_broadcasts_as_ever() -> None:
    found = comparands({"y": np.ones((ROWS, N)), "lse": np.ones(N)}, "result")
    assert (found["y"] - found["lse"]).shape == (ROWS, N)
    assert type(plain(found["y"])) is np.ndarray
