"""Probes of the grouped operator: the splits and the output that the designs of `paged/probes.py` must give.

Every limit follows from the operations of kernels/CONTRACT.md, with u = 2^-24: a rounded binary32 operation errs by
a factor of at most 1 + u. Counts of such factors are rounded up, which covers terms of second order. From `references/`
this file takes only where each split begins.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from audit import Array, Case, Inputs, Measured, Probe

from ...references.splits import TILE, splits, total_of
from ..paged import probes as designs
from ..paged.probes import Array64, Design, measured, numbers, output, worst

Got = Mapping[str, Array]
Lengths = NDArray[np.int32]
Tokens = NDArray[np.int64]

U = 2.0**-24
_NOTHING = float(np.float32(-1e30))
_GAIN = float(designs.V_SCALE)


# ---- Closed forms; each returns the array that uses most of its limit -------------------------------------------


def equal_weights(design: Design, lengths: Lengths, got: Got) -> Measured:
    """q = 0: lse is (0, visible tokens) and partial is v_scale * sum of V, rounded once: both exactly.

    Scores are 0, weights 1 and residuals 0. V are multiples of 2^-9 whose sums stay below 2^15 in a split and 2^8
    in a tile, so that no tensor-core step truncates (F >= 23) and no f32 sum rounds.
    """
    counts = np.repeat(_counts(design, lengths)[:, :, None], design.q.shape[1], axis=2)
    tokens, sums = counts.sum(axis=-1), counts @ numbers(design.values)
    # Merge: weights are 1 and their sum is exact. 1/sum and partial round once each, and a split's share passes
    # through at most one fma for each split: splits + 2 factors.
    seen = np.maximum(tokens.sum(axis=0), 1)[..., None]
    expected = _GAIN * sums.sum(axis=0) / seen
    limit = (len(sums) + 3) * U * _GAIN * np.abs(sums).sum(axis=0) / seen
    return worst(*_exact_splits(got, np.zeros(tokens.shape), tokens, sums), *_outputs(got, expected, limit))


def own_class(design: Design, lengths: Lengths, got: Got) -> Measured:
    """All weight on a line's own class, whose V is the output; a split with n of its tokens has lse (score, n) and
    partial v_scale * n * V, rounded once: both exactly. A split with other tokens only is not constrained.

    Every other token weighs e^-80 = 1.8e-35, for which P and R are 0. What such tokens, and those before the first
    own one, leave in a sum or numerator is below 2^-60 of it, and adding that rounds to no change. V are multiples of
    2^-3 of at most 60: their sums are exact, as in `equal_weights`.
    """
    assert design.own is not None
    tokens = _own_tokens(design.classes, design.own, lengths)
    values = numbers(design.values[design.own])
    dots = (design.q.astype(np.float64) * numbers(design.keys[design.own])).sum(axis=-1).astype(np.float32)
    # q.k is exact; scale * k_scale is rounded, and its product with q.k, here as in the contract.
    scores = np.broadcast_to((dots * (design.scale * designs.K_SCALE)).astype(np.float64), tokens.shape)
    unconstrained = (tokens == 0) & (_visible_tokens(lengths)[..., None] > 0)
    number = tokens.sum(axis=0)[..., None]
    expected = np.where(number > 0, (_GAIN * values).astype(np.float32), 0).astype(np.float64)
    # The factors of `equal_weights`, and one for `expected`. The weight of a single token is 1/1, so it rounds once.
    limit = np.where(number > 1, (len(tokens) + 4) * U * np.abs(expected), 0)
    exact = _exact_splits(got, scores, tokens, tokens[..., None] * values, unconstrained)
    return worst(*exact, *_outputs(got, expected, limit))


def two_levels(design: Design, lengths: Lengths, got: Got) -> Measured:
    """Two scores in each line: lse = ln(sum of n_c e^score_c) in each split, out = sum of pi_c V_c, in FP64."""
    counts = _counts(design, lengths)
    shares, errors, lse = _softmax(design, counts)
    seen = np.isfinite(lse)
    # Of the sum: 5 levels of the tree and one fma a tile. Where nothing is seen (-1e30, 0) is stored exactly.
    limit = np.where(seen, (shares * errors).sum(axis=-1) + (_tiles(lengths) + 6) * U, 0)
    stored = got["lse"][: len(counts), : len(lengths)].astype(np.float64)
    with np.errstate(all="ignore"):  # a wrong result may hold anything
        value = np.where(seen, stored[..., 0] + np.log(stored[..., 1]), stored[..., 0] - _NOTHING + stored[..., 1])
    split = measured("lse split, row, head", value, np.where(seen, lse, 0), limit)
    return worst(split, *_outputs(got, *_mixture(design, lengths)))


def constant_values(design: Design, lengths: Lengths, got: Got) -> Measured:
    """V depends on d alone: out is v_scale * V, since the numerator and the sum have the same inexact weights."""
    return worst(*_outputs(got, *_mixture(design, lengths)))


# ---- Parts of the closed forms ----------------------------------------------------------------------------------


def _exact_splits(
    got: Got, scores: Array64, tokens: Tokens, numerators: Array64, unconstrained: NDArray[np.bool_] | None = None
) -> tuple[Measured, Measured]:
    """lse (score, tokens) and partial v_scale * numerator of every active split, without any error.

    scores, tokens and unconstrained [splits, rows, heads], numerators [splits, rows, heads, dim].
    """
    active, rows = tokens.shape[:2]
    lse, partial = (got[name][:active, :rows] for name in ("lse", "partial"))
    state = np.stack([np.where(tokens > 0, scores, _NOTHING), tokens], axis=-1)
    numerator = (_GAIN * numerators).astype(np.float32).astype(np.float64)
    if unconstrained is not None:  # only a NaN fails there
        state, numerator = (np.where(unconstrained[..., None], *pair) for pair in ((lse, state), (partial, numerator)))
    return (
        measured("lse split, row, head, state", lse, state, 0),
        measured("partial split, row, head, dim", partial, numerator, 0),
    )


def _outputs(got: Got, expected: Array64, limit: Array64) -> tuple[Measured, Measured]:
    return measured("pre-cast row, head, dim", got["precast"], expected, limit), output(got["out"], expected, limit)


def _mixture(design: Design, lengths: Lengths) -> tuple[Array64, Array64]:
    """v_scale * sum of pi_c V_c and how far the output before its rounding may be from it, f64 [rows, heads, dim].

    An error of a weight moves the output in proportion to V_c - out. The rest, in units of u * sum of pi_c |V_c|, is
    what differs between numerator and sum, with T tiles at most in a split and S splits:
      3    P + R * 2^-11 is p but for 2^-23 p, or for 2^-36 where f16 is subnormal, and 3,328 * 2^-36 < u;
      193  a tensor-core step over L terms and c truncates L + 1 terms below 2^-F of the largest and its sum below
           2^-23, and 64 / L steps make a tile: 42 u on sm_90, 88 u on sm_80, 192 u on sm_70; 1 for subnormal P;
      5    the tree over p;
      2T   one fma a tile in both;       2S   one fma a split of the merge in both;
      3    v_scale, 1 / sum, weight * (1 / sum).
    """
    counts = _counts(design, lengths)
    shares, errors, _ = _softmax(design, counts.sum(axis=0))
    values = numbers(design.values)
    out = shares @ values
    moved = np.einsum("rhc,rhcd->rhd", shares * errors, np.abs(values - out[:, :, None]))
    rest = (208 + 2 * (_tiles(lengths) + len(counts))) * U * (shares @ np.abs(values))
    return _GAIN * out, _GAIN * (moved + rest)


def _softmax(design: Design, counts: Tokens) -> tuple[Array64, Array64, Array64]:
    """Shares pi_c and their relative errors [..., heads, classes], and lse [..., heads], for counts [..., classes].

    A weight e^(score_c - top) inherits 2 roundings of its score and 1 of the difference, absolute ones, and less than
    2 u from exp itself. With two levels the maximum rises at most once on a token's way through tiles and splits, so
    that p, rescale and the merge's weight together hold one such factor. Where nothing is seen: 0, 0, -inf.
    """
    scores = design.dots * float(design.scale) * float(designs.K_SCALE)
    present = np.where(counts[..., None, :] > 0, scores, -np.inf)
    top = present.max(axis=-1, keepdims=True)
    below = np.where(np.isfinite(present), present - np.where(np.isfinite(top), top, 0), -np.inf)
    weights = counts[..., None, :] * np.exp(below)
    sums = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):  # ln 0 where nothing is seen
        lse = (top + np.log(sums))[..., 0]
    away = np.where(np.isfinite(below), -below, 0)
    errors = U * (2 * np.abs(scores) + away + 2 * (away > 0))
    return weights / np.where(sums > 0, sums, 1), errors, lse


# ---- Counting visible tokens ------------------------------------------------------------------------------------


def _shown(lengths: Lengths) -> list[list[slice]]:
    """The tokens of each split that each row sees."""
    parts = splits(total_of(lengths))
    return [[slice(part.start, max(part.start, min(part.stop, int(n)))) for n in lengths] for part in parts]


def _visible_tokens(lengths: Lengths) -> Tokens:
    """[splits, rows]"""
    return np.array([[shown.stop - shown.start for shown in rows] for rows in _shown(lengths)])


def _counts(design: Design, lengths: Lengths) -> Tokens:
    """Visible tokens of each class, [splits, rows, classes]."""
    kinds = len(design.values)
    return np.array(
        [[np.bincount(design.classes[shown], minlength=kinds) for shown in rows] for rows in _shown(lengths)]
    )


def _own_tokens(classes: NDArray[np.intp], own: NDArray[np.intp], lengths: Lengths) -> Tokens:
    """Visible tokens of each line's own class, [splits, rows, heads]."""
    return np.array(
        [
            [(classes[shown] == own[row][:, None]).sum(axis=1) for row, shown in enumerate(rows)]
            for rows in _shown(lengths)
        ]
    )


def _tiles(lengths: Lengths) -> int:
    """The most tiles in a split."""
    return max(-(-len(part) // TILE) for part in splits(total_of(lengths)))


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
    return designs.position(case, [part.start for part in splits(case.context)])


GROUPED_PROBES = (
    _probe("uniform", designs.uniform, equal_weights),
    _probe("position", _position, own_class),
    _probe("heads", designs.heads, own_class),
    _probe("dimensions", designs.dimensions, constant_values),
    _probe("one_hot", designs.one_hot, equal_weights),
    _probe("one_hot_high", designs.one_hot_high, equal_weights),
    _probe("two_keys", designs.two_keys, two_levels),
    _probe("biased", designs.biased, constant_values),
    _probe("tiles", designs.tiles, two_levels),
    _probe("sparse", designs.sparse, equal_weights),
)
