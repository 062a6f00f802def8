"""The probes of the scalar operator: what its partitions and its output must be for the designs of `paged/probes.py`.

Every limit follows from the operations of kernels/CONTRACT.md, section 6, with u = 2^-24: a rounded binary32
operation errs by a factor of at most 1 + u. Counts of such factors are rounded up, which covers terms of second
order. From `references/` this file takes only where each partition begins. There is one row, and it sees every token.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from audit import Array, Case, Inputs, Measured, Probe

from ...references.splits import partitions, total_of
from ..paged import probes as designs
from ..paged.probes import Array64, Design, measured, numbers, output, worst

Got = Mapping[str, Array]
Lengths = NDArray[np.int32]
Tokens = NDArray[np.int64]

U = 2.0**-24
_GAIN = float(designs.V_SCALE)
_NORMALISING = 3
"""Roundings from a partition's numerator to `partial`: 1 / sum, its product with v_scale, that with the numerator."""
_REDUCING = 2
"""Those at the reducer's end: 1 / total, and its product with the numerator."""
_SUMMING = 11
"""Those of a partition's sum: a thread's 4 tokens, the first added to 0, and 5 and 3 levels of the trees."""
_TREES = 8
"""Those of the reducer's total: 5 and 3 levels of the trees."""


# ---- Closed forms; each returns the array that uses most of its limit -------------------------------------------


def equal_weights(design: Design, lengths: Lengths, got: Got) -> Measured:
    """q = 0: maximum is +-0 and sums the partition's tokens, both exactly; partial is v_scale times the mean of V.

    Scores are +-0 and weights 1. V are multiples of 2^-9 of at most 4 and a partition has 1,024 tokens, so that each
    numerator is a multiple of 2^-9 up to 2^12: no fma rounds.
    """
    counts = np.repeat(_counts(design, lengths)[:, :, None], design.q.shape[1], axis=2)
    tokens, numerators = counts.sum(axis=-1), counts @ numbers(design.values)
    means = _GAIN * numerators / tokens[..., None]
    exact = _exact_sums(got, np.zeros(tokens.shape), tokens)
    partial = measured("partial partition, row, head, dim", _partial(got, tokens), means, 4 * U * np.abs(means))
    # Reducer: w_i is sums_i and the total is exact, as integers up to 2^18. A partition's share passes through at
    # most one fma for each partition.
    seen = tokens.sum(axis=0)[..., None]
    expected = _GAIN * numerators.sum(axis=0) / seen
    factors = len(tokens) + _NORMALISING + _REDUCING + 1
    return worst(*exact, partial, *_outputs(got, expected, factors * U * _GAIN * np.abs(numerators).sum(axis=0) / seen))


def own_class(design: Design, lengths: Lengths, got: Got) -> Measured:
    """All weight on a line's own class, whose V is the output; a partition with n of its tokens has exactly their
    score as maximum and n as sums, and its partial is v_scale * V. A partition without own tokens is not constrained.

    Every other token weighs e^-80 = 1.8e-35. What such tokens, and those before the first own one, leave in a sum or
    numerator is below 2^-60 of it, and adding that rounds to no change; so it is with the reducer's weights. V are
    multiples of 2^-3 of at most 60: their sums over 1,024 tokens are exact.
    """
    assert design.own is not None
    tokens = _own_tokens(design.classes, design.own, lengths)
    values = numbers(design.values[design.own])
    dots = (design.q.astype(np.float64) * numbers(design.keys[design.own])).sum(axis=-1).astype(np.float32)
    # q.k is exact; scale * k_scale is rounded, and its product with q.k, here as in the contract.
    scores = np.broadcast_to((dots * (design.scale * designs.K_SCALE)).astype(np.float64), tokens.shape)
    unconstrained = tokens == 0
    # The weight of a single token is 1/1, so v_scale * V rounds once, here too.
    once = (_GAIN * values).astype(np.float32).astype(np.float64)
    single = (tokens == 1)[..., None]
    stored = _partial(got, tokens)
    # Where unconstrained, a partial is compared with itself, so that only a NaN fails.
    means = np.where(unconstrained[..., None], stored, np.where(single, once, _GAIN * values))
    limit = np.where(single, 0, (_NORMALISING + 1) * U * np.abs(_GAIN * values))
    partial = measured("partial partition, row, head, dim", stored, means, limit)
    number = tokens.sum(axis=0)[..., None]
    expected = np.where(number == 1, once, _GAIN * values)
    factors = len(tokens) + _NORMALISING + _REDUCING + 1  # as in `equal_weights`
    outputs = _outputs(got, expected, np.where(number == 1, 0, factors * U * np.abs(expected)))
    return worst(*_exact_sums(got, scores, tokens, unconstrained), partial, *outputs)


def two_levels(design: Design, lengths: Lengths, got: Got) -> Measured:
    """Two scores in each line: maximum + ln(sums) = ln(sum of n_c e^score_c) in each partition, and `_mixtures`."""
    shares, errors, lse = _softmax(design, _counts(design, lengths))
    stored = _lines(got["maximum"], len(lse)).astype(np.float64)
    with np.errstate(all="ignore"):  # a wrong result may hold anything
        stored = stored + np.log(_lines(got["sums"], len(lse)).astype(np.float64))
    limit = (shares * errors).sum(axis=-1) + (_SUMMING + 1) * U
    return worst(measured("lse partition, row, head", stored, lse, limit), *_mixtures(design, lengths, got))


def constant_values(design: Design, lengths: Lengths, got: Got) -> Measured:
    """V depends on d alone: partial and out are v_scale * V, since numerator and sum have the same inexact weights."""
    return worst(*_mixtures(design, lengths, got))


# ---- Parts of the closed forms ----------------------------------------------------------------------------------


def _lines(array: Array, active: int) -> Array:
    """The active partitions of a workspace [row, head, partition, ...], as [partition, row, head, ...]."""
    return np.moveaxis(array[:, :, :active], 2, 0)


def _partial(got: Got, tokens: Tokens) -> Array64:
    """[partition, row, head, dim]"""
    return _lines(got["partial"], len(tokens)).astype(np.float64)


def _exact_sums(
    got: Got, scores: Array64, tokens: Tokens, unconstrained: NDArray[np.bool_] | None = None
) -> tuple[Measured, Measured]:
    """maximum and sums of every active partition, without any error; all of [partitions, row, heads]."""
    maximum, sums = (_lines(got[name], len(tokens)).astype(np.float64) for name in ("maximum", "sums"))
    exact = np.ones(tokens.shape, np.bool_) if unconstrained is None else ~unconstrained  # elsewhere only a NaN fails
    return (
        measured("maximum partition, row, head", maximum, np.where(exact, scores, maximum), 0),
        measured("sums partition, row, head", sums, np.where(exact, tokens, sums), 0),
    )


def _outputs(got: Got, expected: Array64, limit: Array64) -> tuple[Measured, Measured]:
    return measured("pre-cast row, head, dim", got["precast"], expected, limit), output(got["out"], expected, limit)


def _mixtures(design: Design, lengths: Lengths, got: Got) -> tuple[Measured, ...]:
    """v_scale * sum of pi_c V_c, of each partition in partial and of all tokens in the output.

    In units of u * sum of pi_c |V_c|, with T tokens at most in a partition and P partitions:
      T               one fma a token in the numerator (the sum has the same weights);
      11, 3           the sum and its use, `_SUMMING` and `_NORMALISING`;
      P + 8 + 2 + 2   the reducer's fmas, its total, its end, and w = sums * exp(..), which enters both.
    """
    counts = _counts(design, lengths)
    within = int(counts.sum(axis=-1).max()) + _SUMMING + _NORMALISING + 2
    means, limit = _mixture(design, counts, within)
    partial = measured("partial partition, row, head, dim", _lines(got["partial"], len(counts)), means, limit)
    reducing = len(counts) + _TREES + _REDUCING + 2
    return partial, *_outputs(got, *_mixture(design, counts.sum(axis=0), within + reducing))


def _mixture(design: Design, counts: Tokens, factors: int) -> tuple[Array64, Array64]:
    """v_scale * sum of pi_c V_c for counts [..., classes], and how far a result of so many factors may be from it.

    An error of a weight moves the mean in proportion to V_c - mean. f64 [..., heads, dim] both.
    """
    shares, errors, _ = _softmax(design, counts)
    values = numbers(design.values)
    mean = shares @ values
    moved = np.einsum("...hc,...hcd->...hd", shares * errors, np.abs(values - mean[..., None, :]))
    return _GAIN * mean, _GAIN * (moved + factors * U * (shares @ np.abs(values)))


def _softmax(design: Design, counts: Tokens) -> tuple[Array64, Array64, Array64]:
    """Shares pi_c and their relative errors [..., heads, classes], and lse [..., heads], for counts [..., classes].

    A weight e^(score_c - top) inherits 2 roundings of its score and 1 of the difference, absolute ones, and less than
    2 u from exp itself. With two levels a partition's maximum is either the highest or that of all its tokens, so that
    p and the reducer's weight together hold one such factor. With constant values no such error shows.
    """
    scores = design.dots * float(design.scale) * float(designs.K_SCALE)
    present = np.where(counts[..., None, :] > 0, scores, -np.inf)
    top = present.max(axis=-1, keepdims=True)
    weights = counts[..., None, :] * np.exp(present - top)
    sums = weights.sum(axis=-1, keepdims=True)
    away = np.where(np.isfinite(present), top - present, 0)
    errors = U * (2 * np.abs(scores) + away + 2 * (away > 0))
    return weights / sums, errors, (top + np.log(sums))[..., 0]


# ---- Counting tokens --------------------------------------------------------------------------------------------


def _parts(lengths: Lengths) -> list[slice]:
    """The tokens of each active partition."""
    return [slice(part.start, part.stop) for part in partitions(total_of(lengths))]


def _counts(design: Design, lengths: Lengths) -> Tokens:
    """Tokens of each class, [partitions, row, classes]."""
    kinds = len(design.values)
    return np.array([[np.bincount(design.classes[part], minlength=kinds)] for part in _parts(lengths)])


def _own_tokens(classes: NDArray[np.intp], own: NDArray[np.intp], lengths: Lengths) -> Tokens:
    """Tokens of each line's own class, [partitions, row, heads]."""
    return np.array([(classes[part] == own[..., None]).sum(axis=-1) for part in _parts(lengths)])


# ---- The probes -------------------------------------------------------------------------------------------------


def _probe(
    name: str, design: Callable[[Case], Design], closed_form: Callable[[Design, Lengths, Got], Measured]
) -> Probe:
    def inputs(case: Case, rng: np.random.Generator) -> Inputs:
        return designs.laid_out(case, design(case), rng)

    def expect(case: Case, given: Inputs, got: Got) -> Measured:
        return closed_form(design(case), np.asarray(given["lengths"]), got)

    return Probe(name, inputs, expect)


def _position(case: Case) -> Design:
    return designs.position(case, [part.start for part in partitions(case.context)])


SCALAR_PROBES = (
    _probe("uniform", designs.uniform, equal_weights),
    _probe("position", _position, own_class),
    _probe("heads", designs.heads, own_class),
    _probe("dimensions", designs.dimensions, constant_values),
    _probe("one_hot", designs.one_hot, equal_weights),
    _probe("two_keys", designs.two_keys, two_levels),
    _probe("biased", designs.biased, constant_values),
    _probe("sparse", designs.sparse, equal_weights),
)
