"""Comparisons beyond numbers: right results of every form pass, and each kind of wrong one fails without an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from audit.comparisons import ArgMax, Permutation, Residual, Sampling, TopK, scaled_residual
from audit.errors import ProjectError
from audit.spec import Array, Bound, Case

CASE = Case("s", "op", {"rows": 2})
SEEDS = range(40)


def passes(
    bound: Bound, got: Mapping[str, Any], inputs: Mapping[str, Any], expected: Mapping[str, Any] | None = None
) -> bool:
    with np.errstate(all="ignore"):
        found = bound.measure(CASE, inputs, got, expected or {})
    assert found is not None
    assert found.value.shape == found.limit.shape
    assert found.value.size
    return bool((found.value <= found.limit).all())


def tied(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Scores with many ties."""
    return rng.integers(0, 5, shape).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_greatest_score_is_an_argmax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = tied(rng, (4, int(rng.integers(2, 40))))
    ties = [rng.choice(np.flatnonzero(row == row.max())) for row in scores]
    bound = ArgMax("i", "x")
    assert passes(bound, {"i": np.array(ties, np.int32)}, {"x": scores})
    assert passes(bound, {"i": np.array(ties, np.float32)[:, None]}, {"x": scores})
    for wrong in (
        -1,
        scores.shape[1],
        2**31 - 1,
        *(at for at in range(scores.shape[1]) if scores[2, at] < scores[2].max()),
    ):
        bad = np.array(ties, np.int32)
        bad[2] = wrong
        assert not passes(bound, {"i": bad}, {"x": scores})
    for wrong in (np.nan, np.inf, 0.5):
        odd = np.array(ties, np.float32)
        odd[1] = wrong
        assert not passes(bound, {"i": odd}, {"x": scores})


def test_scores_may_lie_along_another_axis_or_in_the_reference() -> None:
    scores = np.array([[1.0, 5.0], [3.0, 2.0]])
    assert passes(ArgMax("i", "x", axis=0), {"i": np.array([1, 0])}, {"x": scores})
    assert not passes(ArgMax("i", "x", axis=0), {"i": np.array([1, 1])}, {"x": scores})
    bound = ArgMax("i", "x", "fp64")
    assert bound.reference == "fp64"
    assert passes(bound, {"i": np.array([1, 0])}, {}, {"x": scores})
    assert passes(ArgMax("i", "x", gap=1.0), {"i": np.array([1, 1])}, {"x": scores})
    assert not passes(ArgMax("i", "x", gap=0.5), {"i": np.array([1, 1])}, {"x": scores})
    assert not passes(ArgMax("i", "x"), {"i": np.array([1, 0])}, {"x": np.array([[np.nan, 5.0], [3.0, 2.0]])})
    assert passes(ArgMax("i", "x"), {"i": np.array([0])}, {"x": np.array([[-np.inf, -np.inf]])})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_top_k_is_a_set_with_any_tie_at_its_edge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    k = int(rng.integers(1, n))
    scores = tied(rng, (3, n))
    chosen = []
    for row in scores:
        shuffled = rng.permutation(n)
        best = shuffled[np.argsort(-row[shuffled], kind="stable")][:k]
        chosen.append(rng.permutation(best))
    at = np.array(chosen, np.int64)
    values = np.take_along_axis(scores, at, -1)
    bound, bare = TopK("v", "i", "x"), TopK("", "i", "x")
    assert passes(bound, {"v": values, "i": at}, {"x": scores})
    assert passes(bare, {"i": at}, {"x": scores})
    for wrong in (-1, n, 2**40):
        bad = at.copy()
        bad[1, 0] = wrong
        assert not passes(bare, {"i": bad}, {"x": scores})
    if k > 1:
        twice = at.copy()
        twice[1, 0] = twice[1, 1]
        assert not passes(bare, {"i": twice}, {"x": scores})
    worse = at.copy()
    worse[0, 0] = np.argmin(scores[0])
    if scores[0].min() < scores[0, at[0, 0]] and worse[0, 0] not in at[0]:
        assert not passes(bare, {"i": worse}, {"x": scores})
    for wrong_value in (np.nan, np.inf, 9.0):
        off = values.copy()
        off[2, 0] = wrong_value
        assert not passes(bound, {"v": off, "i": at}, {"x": scores})


def test_values_must_be_those_of_the_named_elements() -> None:
    scores = np.array([[3.0, 2.0, 1.0]], np.float32)
    swapped = {"v": np.array([[2.0, 3.0]], np.float32), "i": np.array([[0, 1]])}
    assert not passes(TopK("v", "i", "x"), swapped, {"x": scores})
    with pytest.raises(ProjectError, match="expected 1 to 3 indices"):
        passes(TopK("", "i", "x"), {"i": np.zeros((1, 4), int)}, {"x": scores})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_permutation_has_every_element_as_often(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = tied(rng, (3, int(rng.integers(4, 30))))
    mixed = rng.permuted(x, axis=-1)
    assert passes(Permutation("y", "x"), {"y": mixed}, {"x": x})
    assert passes(Permutation("y", "x", ascending=True), {"y": np.sort(x, axis=-1)}, {"x": x})
    falling = -np.sort(-x, axis=-1)
    assert passes(Permutation("y", "x"), {"y": falling}, {"x": x})
    assert passes(Permutation("y", "x", ascending=True), {"y": falling}, {"x": x}) == bool(
        (falling == np.sort(x, axis=-1)).all()
    )
    for wrong in (np.nan, np.inf, x[1].max() + 1, 7.5):
        bad = mixed.copy()
        bad[1, 2] = wrong
        assert not passes(Permutation("y", "x"), {"y": bad}, {"x": x})
    other = rng.permutation(x.shape[1])
    assert passes(Permutation("i"), {"i": other[None]}, {})
    other[0] = other[1]
    assert not passes(Permutation("i"), {"i": other[None]}, {})


def draws(rng: np.random.Generator, shares: Array, count: int) -> Array:
    return np.stack([rng.choice(shares.shape[-1], count, p=row) for row in shares])


def test_right_draws_raise_no_alarm_and_look_as_likely_as_they_are() -> None:
    rng = np.random.default_rng(0)
    unlikely = 0
    for _ in range(300):
        shares = rng.dirichlet(np.full(int(rng.integers(2, 60)), 0.5), 2)
        found = Sampling("t", "p", false_alarm=1e-2).measure(
            CASE, {"p": shares}, {"t": draws(rng, shares, int(rng.integers(50, 2000)))}, {}
        )
        assert found is not None
        unlikely += bool(found.value.size and not (found.value <= found.limit).all())
        assert (found.value <= 9).all()
    assert unlikely <= 10  # 300 times 0.01 is 3; more than 10 has a probability of 3e-4


def test_draws_of_another_distribution_fail() -> None:
    rng = np.random.default_rng(1)
    shares = np.array([[0.5, 0.25, 0.125, 0.125, 0.0], [0.1, 0.2, 0.3, 0.4, 0.0]])
    good = draws(rng, shares, 5000)
    bound = Sampling("t", "p")
    assert passes(bound, {"t": good}, {"p": shares})
    assert not passes(bound, {"t": good[::-1]}, {"p": shares})  # rows exchanged: over all draws nothing differs
    assert not passes(bound, {"t": np.zeros_like(good)}, {"p": shares})
    assert not passes(bound, {"t": rng.integers(0, 4, good.shape)}, {"p": shares})
    for wrong in (4, 5, -1):
        bad = good.copy()
        bad[0, 0] = wrong
        assert not passes(bound, {"t": bad}, {"p": shares})
    odd = good.astype(np.float32)
    odd[0, 0] = np.nan
    assert not passes(bound, {"t": odd}, {"p": shares})


def test_one_draw_a_row_is_tested_over_all_rows() -> None:
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(4), 2000)
    drawn = draws(rng, shares, 1)
    assert passes(Sampling("t", "p"), {"t": drawn[:, 0]}, {"p": shares})
    assert not passes(Sampling("t", "p"), {"t": np.minimum(drawn[:, 0], 2)}, {"p": shares})


def test_too_few_draws_are_not_tested_and_what_is_no_distribution_is_refused() -> None:
    few = Sampling("t", "p").measure(CASE, {"p": np.full(50, 0.02)}, {"t": np.arange(5)}, {})
    assert few is not None
    assert few.value.size == 0
    with pytest.raises(ProjectError, match="with the sum 1"):
        passes(Sampling("t", "p"), {"t": np.zeros(100, int)}, {"p": np.full(4, 0.5)})
    with pytest.raises(ProjectError, match="expected a number between 0 and 1"):
        Sampling("t", "p", false_alarm=0.0)


@pytest.mark.parametrize("seed", range(10))
def test_a_factorisation_is_judged_by_its_residual(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    root = rng.normal(size=(3, n, n))
    a = (root @ root.swapaxes(-1, -2) + n * np.eye(n)).astype(np.float32)
    lower = np.linalg.cholesky(a.astype(np.float64)).astype(np.float32)

    def residual(_case: Case, inputs: Mapping[str, Any], got: Mapping[str, Array]) -> Array:
        factor = np.tril(got["l"].astype(np.float64))
        return scaled_residual(inputs["a"], factor @ factor.swapaxes(-1, -2))

    bound = Residual("cholesky", residual)
    assert passes(bound, {"l": lower}, {"a": a})
    for wrong in (np.float32(np.nan), np.float32(np.inf), lower[1, 1, 1] * np.float32(1.01)):
        bad = lower.copy()
        bad[1, 1, 1] = wrong
        assert not passes(bound, {"l": bad}, {"a": a})


def test_what_scores_and_arrays_are_must_be_said() -> None:
    with pytest.raises(ProjectError, match="expected 'z' among the inputs"):
        passes(ArgMax("i", "z"), {"i": np.array([0])}, {"x": np.ones((1, 2))})
    with pytest.raises(ProjectError, match="expected one index for each of the rows"):
        passes(ArgMax("i", "x"), {"i": np.array([0, 1, 0])}, {"x": np.ones((2, 2))})
    with pytest.raises(ProjectError, match=r"expected two arrays .*, m, n"):
        scaled_residual(np.ones(3), np.ones(3))
