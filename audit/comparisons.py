"""Comparisons beyond numbers: an index among ties, a set, a permutation, a sample of a distribution, a factorisation.

Each returns a `Bound`. Wrong results fail and never raise: an index out of range, a duplicate, a NaN or an infinity.
What they compare with is an input, as its buffer stores it, or an array of the reference that `reference` names. Rows
lie along the last dimension unless `axis` says otherwise. `docs/relations.md` has examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from audit.errors import ProjectError
from audit.precision import unit_roundoff
from audit.spec import Array, Bound, Case, Expected, Got, Inputs, Measured

LEAST_EXPECTED = 10.0
"""The fewest expected draws of a token that has a bin of its own in `Sampling`."""
THRESHOLD = 30.0
"""The test ratio up to which LAPACK's own test programs accept a result (their input files, such as dtest.in)."""


def ArgMax(index: str, scores: str, reference: str = "", axis: int = -1, gap: float = 0.0) -> Bound:  # noqa: N802
    """Each index names a greatest score of its row: any of them, where several are equal.

    The measured value is how far the named score is below the greatest; infinite for an index that is out of range or
    no integer. A row of scores with a NaN fails.

    index      output with the indices: the shape of the scores without `axis`, or with size 1 there
    scores     input, or array of the reference, with the scores
    reference  name of the reference; empty where the scores are an input
    axis       the dimension along which the index counts
    gap        the greatest permitted distance below the greatest score, for scores that are rounded twice
    """

    def measure(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
        rows = np.moveaxis(_values(scores, inputs, expected), axis, -1)
        stored = np.asarray(got[index])
        if stored.size != math.prod(rows.shape[:-1]):
            raise ProjectError(
                f"arg_max({index}): expected one index for each of the rows {rows.shape[:-1]} of {scores}, but got an "
                f"array of shape {stored.shape}"
            )
        at, valid = _indices(stored.reshape(rows.shape[:-1]), rows.shape[-1])
        chosen = np.take_along_axis(rows, at[..., None], -1)[..., 0]
        below = np.where(chosen == (most := rows.max(axis=-1)), 0.0, most - chosen)
        value = np.where(np.isnan(rows).any(axis=-1), np.nan, np.where(valid, below, np.inf)).reshape(stored.shape)
        return Measured(value, np.full(value.shape, gap), ())

    return Bound(f"arg_max({index})", measure, reference, output=index)


def TopK(values: str, indices: str, scores: str, reference: str = "", gap: float = 0.0) -> Bound:  # noqa: N802
    """Each row names its k greatest scores, in any order; where scores at the edge are equal, any of them.

    The measured value of a row is how far its sorted scores are from the sorted greatest ones, or its values from the
    scores that it names; infinite for an index twice, out of range or no integer.

    values     output with the scores of the named elements, [..., k]; empty where there is none
    indices    output with the indices, [..., k]
    scores     input, or array of the reference, [..., n] with n >= k
    reference  name of the reference; empty where the scores are an input
    gap        the greatest permitted distance, for scores that are rounded twice
    """

    def measure(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
        rows = _values(scores, inputs, expected)
        stored = np.asarray(got[indices])
        k, n = stored.shape[-1] if stored.ndim else 0, rows.shape[-1]
        if stored.shape[:-1] != rows.shape[:-1] or not 0 < k <= n:
            raise ProjectError(
                f"top_k({indices}): expected 1 to {n} indices for each of the rows {rows.shape[:-1]} of {scores}, but "
                f"got an array of shape {stored.shape}"
            )
        at, valid = _indices(stored, n)
        order = np.sort(at, axis=-1)
        distinct = (order[..., 1:] != order[..., :-1]).all(axis=-1)
        named = np.take_along_axis(rows, at, -1)
        apart = _apart(np.sort(named, axis=-1), np.sort(rows, axis=-1)[..., n - k :]).max(axis=-1)
        if values:
            mine = np.asarray(got[values])
            if mine.shape != stored.shape:
                raise ProjectError(f"top_k({indices}): expected {values} of shape {stored.shape}, but got {mine.shape}")
            rounded = named.astype(mine.dtype).astype(np.float64)
            apart = np.maximum(apart, _apart(mine.astype(np.float64), rounded).max(axis=-1))
        wrong = ~valid.all(axis=-1) | ~distinct
        value = np.where(np.isnan(rows).any(axis=-1), np.nan, np.where(wrong, np.inf, apart))
        return Measured(value, np.full(value.shape, gap), ())

    return Bound(f"top_k({indices})", measure, reference, output=indices)


def Permutation(name: str, of: str = "", reference: str = "", ascending: bool = False) -> Bound:  # noqa: N802
    """Each row holds the elements of another array's row, every one as often, in any order or in ascending order.

    The measured value of a row counts the elements of the sorted row that differ, and those that are less than the one
    before where `ascending` asks for order. A NaN is an element like others, but nothing ascends past it.

    name       output with the permuted elements, [..., n]
    of         input, or array of the reference, of the same shape; empty for the indices 0 to n - 1 of each row
    reference  name of the reference; empty where `of` is an input or empty
    ascending  ask for ascending order as well
    """

    def measure(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine = np.asarray(got[name])
        other = _array(of, inputs, expected) if of else np.broadcast_to(np.arange(mine.shape[-1]), mine.shape)
        if mine.shape != other.shape or not mine.ndim:
            raise ProjectError(f"permutation({name}): expected the shape {other.shape} of {of}, but got {mine.shape}")
        one, two = (np.sort(_comparable(each), axis=-1) for each in (mine, other))
        wrong = (one != two) & ~(np.isnan(one) & np.isnan(two))
        value = wrong.sum(axis=-1)
        if ascending:
            plain = _comparable(mine)
            value = value + (~(plain[..., 1:] >= plain[..., :-1])).sum(axis=-1)
        value = np.asarray(value, np.float64)
        return Measured(value, np.zeros(value.shape), ())

    return Bound(f"permutation({name})", measure, reference, output=name)


def Sampling(  # noqa: N802
    name: str, probabilities: str, reference: str = "", false_alarm: float = 1e-9
) -> Bound:
    """The drawn tokens follow the given distribution, and none of them has the probability 0.

    A draw is random, so that no value is right or wrong. What is tested is how often each token comes, by chi-square
    with tokens pooled that are expected fewer than ten times: once over all draws, and in every row that has enough of
    them. Both statistics must speak against the distribution, Pearson's X2 and the likelihood ratio G (Cochran, The
    chi-square test of goodness of fit, 1952; Williams' correction of G, 1976): X2 alone has a heavy tail where a token
    is rare. Rows with different distributions have a smaller variance than one with their mean, so that the test over
    all draws errs on the side of no alarm. Too few draws for any test are inconclusive.

    The measured value is -log10 of the probability that right draws look at least as unlikely, times the number of
    tests; infinite for a token of probability 0, out of range or no integer. Its limit is -log10 of `false_alarm`.

    name           output with the drawn tokens, [rows ..., draws], or [draws] for one distribution
    probabilities  input, or array of the reference, [tokens] or [rows ..., tokens]; every row has the sum 1
    reference      name of the reference; empty where the probabilities are an input
    false_alarm    the probability that a right kernel fails
    """
    if not 0 < false_alarm < 1:
        raise ProjectError(f"Sampling({name!r}): false_alarm: expected a number between 0 and 1, but got {false_alarm}")

    def measure(_case: Case, inputs: Inputs, got: Got, expected: Expected) -> Measured:
        shares = _values(probabilities, inputs, expected)
        drawn = np.asarray(got[name])
        rows = shares.reshape(-1, shares.shape[-1])
        if not drawn.size:
            return Measured(np.zeros(0), np.zeros(0), ("draws",))
        if drawn.size % len(rows) or (shares.ndim > 1 and drawn.shape[: shares.ndim - 1] != shares.shape[:-1]):
            raise ProjectError(
                f"sampling({name}): expected draws for each of the rows {shares.shape[:-1]} of {probabilities}, but "
                f"got an array of shape {drawn.shape}"
            )
        if not ((rows >= 0).all() and np.allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-3)):
            raise ProjectError(
                f"sampling({name}): expected rows of {probabilities} of numbers of at least 0 with the sum 1, but got "
                f"sums from {rows.sum(axis=-1).min():.6g} to {rows.sum(axis=-1).max():.6g}"
            )
        rows = rows / rows.sum(axis=-1, keepdims=True)
        at, valid = _indices(drawn.reshape(len(rows), -1), rows.shape[-1])
        limit = -math.log10(false_alarm)
        if not (valid & (np.take_along_axis(rows, at, -1) > 0)).all():
            return Measured(np.array([np.inf]), np.array([limit]), ("test",))
        draws = at.shape[1]
        counts = np.stack([np.bincount(row, minlength=rows.shape[-1]) for row in at]).astype(np.float64)
        tests = [(counts.sum(axis=0), rows.sum(axis=0) * draws)]
        tests += [] if len(rows) == 1 else list(zip(counts, rows * draws, strict=True))
        found = [chance for each in tests if (chance := _log10_chance(*each)) is not None]
        value = np.array([max(-chance - math.log10(len(found)), 0.0) for chance in found])
        return Measured(value, np.full(value.shape, limit), ("test",))

    return Bound(f"sampling({name})", measure, reference)


def Residual(  # noqa: N802
    name: str, compute: Callable[[Case, Inputs, Got], Array | float], limit: float | None = None
) -> Bound:
    """The structure of a result: a residual, scaled so that correct arithmetic keeps it small, of one or more matrices.

    name     name of the bound in results: `error:residual(NAME)`
    compute  the scaled residuals, without a unit, from a case, its inputs and the variant's results, such as
             `scaled_residual(a, l @ l.T)` for a Cholesky factorisation
    limit    the greatest permitted residual. By default 30, the threshold of LAPACK's test programs for such ratios
    """

    def measure(case: Case, inputs: Inputs, got: Got, _expected: Expected) -> Measured:
        value = np.asarray(compute(case, inputs, got), np.float64)
        return Measured(value, np.full(value.shape, THRESHOLD if limit is None else limit), ())

    return Bound(f"residual({name})", measure, "")


def scaled_residual(a: Array, product: Array, dtype: str = "f32") -> Array:
    """||a - product||_1 / (n * u * ||a||_1) over the last two dimensions, f64[...]: LAPACK's test ratio (as in DPOT01).

    `a` and `product` are [..., m, n] of any dtype and of one shape; u is the unit roundoff of `dtype`, in which the
    factors were computed. Where `a` is 0, the result is 0 or infinite. Raises ProjectError for other shapes.
    """
    right, mine = np.asarray(a).astype(np.float64), np.asarray(product).astype(np.float64)
    if right.shape != mine.shape or right.ndim < 2:
        raise ProjectError(f"scaled_residual: expected two arrays [..., m, n], but got {right.shape} and {mine.shape}")
    with np.errstate(all="ignore"):
        error, size = (np.abs(each).sum(axis=-2).max(axis=-1) for each in (right - mine, right))
        return np.asarray(np.where(error == 0, 0.0, error / (right.shape[-1] * unit_roundoff(dtype) * size)))


def _log10_chance(counts: Array, expected: Array) -> float | None:
    """log10 of the probability that draws lie at least so far from what is expected; None where they cannot."""
    order = np.argsort(-expected, kind="stable")
    counts, expected = counts[order], expected[order]
    own = int(np.count_nonzero(expected >= LEAST_EXPECTED))
    bins, wanted = [*counts[:own]], [*expected[:own]]
    rest, rare = float(counts[own:].sum()), float(expected[own:].sum())
    if rare >= LEAST_EXPECTED or (rare > 0 and not wanted):
        bins, wanted = [*bins, rest], [*wanted, rare]
    elif wanted:
        bins[-1], wanted[-1] = bins[-1] + rest, wanted[-1] + rare
    freedom = len(bins) - 1
    if freedom < 1:
        return None
    one, other = np.array(bins), np.array(wanted)
    pearson = float((np.square(one - other) / other).sum())
    with np.errstate(all="ignore"):
        ratio = 2 * float(np.where(one > 0, one * np.log(one / other), 0.0).sum())
    total = other.sum()
    williams = 1 + (float((total / other).sum()) - 1) / (6 * total * freedom)
    return max(_log10_tail(freedom, pearson), _log10_tail(freedom, ratio / williams))


def _log10_tail(freedom: int, statistic: float) -> float:
    """log10 of the probability that chi-square with so many degrees of freedom is at least the statistic."""
    import mpmath

    tail = mpmath.gammainc(freedom / 2, max(statistic, 0.0) / 2, mpmath.inf, regularized=True)
    return float(mpmath.log10(tail)) if tail > 0 else -math.inf


def _array(name: str, inputs: Inputs, expected: Expected) -> Array:
    """An array of the reference, or an input."""
    if name in expected:
        return np.asarray(expected[name])
    if name in inputs:
        return np.asarray(inputs[name])
    raise ProjectError(
        f"expected {name!r} among the inputs ({', '.join(inputs)}) or the arrays of the reference "
        f"({', '.join(expected) or 'none is named'}); name the reference with `reference`"
    )


def _values(name: str, inputs: Inputs, expected: Expected) -> Array:
    found = _array(name, inputs, expected).astype(np.float64)
    if not found.ndim or not found.shape[-1]:
        raise ProjectError(f"expected an array of at least one element along a dimension for {name!r}, but got a "
                           f"shape of {found.shape}")  # fmt: skip
    return found


def _indices(stored: Array, size: int) -> tuple[Array, Array]:
    """Indices as integers, 0 where they are none, and which of them are integers from 0 to size - 1."""
    if stored.dtype.kind in "iu":
        valid = (stored >= 0) & (stored < size)
    else:
        wide = stored.astype(np.float64)
        valid = (wide >= 0) & (wide < size) & (wide == np.floor(wide))
    return np.where(valid, stored, np.zeros((), stored.dtype)).astype(np.int64), np.asarray(valid)


def _apart(one: Array, other: Array) -> Array:
    return np.where(one == other, 0.0, np.abs(one - other))


def _comparable(array: Array) -> Array:
    """Numbers that numpy can sort: what ml_dtypes adds becomes f32, exactly."""
    return array if array.dtype.kind in "fiub" else array.astype(np.float32)
