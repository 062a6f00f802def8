"""The probes of the grouped operator: what its splits and its output must be for the designs of `paged/probes.py`.

Every limit follows from the operations of kernels/CONTRACT.md, with u = 2^-24: a rounded binary32 operation errs by
a factor of at most 1 + u. Counts of such factors are rounded up, which covers terms of second order. Nothing here
comes from `references/` but where each split begins.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from audit.bounds import Measured
from audit.spec import Array, Case, Inputs, Probe

from ...references.splits import TILE, splits, total_of
from ..paged import probes as designs
from ..paged.probes import Array64, Design, measured, output, worst

Got = Mapping[str, Array]
Lengths = NDArray[np.int32]

U = 2.0**-24
_NOTHING = float(np.float32(-1e30))
_GAIN = float(designs.V_SCALE)


# ---- Closed forms: (design, lengths i32[rows], got) -> what uses most of its limit ------------------------------


def equal_weights(design: Design, lengths: Lengths, got: Got) -> Measured:
    """q = 0: lse is (0, visible tokens) and partial is v_scale * sum of V, rounded once: both exactly.

    Scores are 0, weights 1 and residuals 0. V are multiples of 2^-9 whose sums stay below 2^15 in a split and 2^8
    in a tile, so that no tensor-core step truncates (F >= 23) and no f32 sum rounds.
    """
    counts = _counts(design, lengths)
    tokens, sums = counts.sum(axis=-1), counts @ design.value_numbers
    # Merge: weights are 1 and their sum is exact. 1/sum and partial round once each, and a split's share passes
    # through at most one fma for each split: splits + 2 factors.
    seen = np.maximum(tokens.sum(axis=0), 1)[..., None]
    expected = _GAIN * sums.sum(axis=0) / seen
    limit = (len(sums) + 3) * U * _GAIN * np.abs(sums).sum(axis=0) / seen
    return worst(*_exact_splits(got, np.zeros_like(tokens), tokens, sums), *_outputs(got, expected, limit))


def own_class(design: Design, lengths: Lengths, got: Got) -> Measured:
    """All weight on a line's own class, whose V is the output; a split that has n of its tokens has lse (score, n)
    and partial v_scale * n * V, rounded once: both exactly. Of a split that has none this says nothing.

    Every other token weighs e^-80 = 1.8e-35, for which P and R are 0. What such tokens, and those before the first
    own one, leave in a sum or numerator is below 2^-60 of it, and adding that rounds to no change. V are multiples of
    2^-3 of at most 60: their sums are exact, as in `equal_weights`.
    """
    tokens, visible = _own_tokens(design, lengths), _counts_of_all(lengths)
    values = design.value_numbers[design.own]
    dots = np.take_along_axis(design.dots, design.own[..., None], axis=-1)[..., 0]
    # q.k is exact; scale * k_scale and its product with q.k are rounded, here as in the contract.
    scores = dots.astype(np.float32) * (design.scale * designs.K_SCALE)
    scores = np.where(visible > 0, scores, 0)
    silent = (tokens == 0) & (visible > 0)
    number = tokens.sum(axis=0)[..., None]
    expected = np.where(number > 0, (_GAIN * values).astype(np.float32), 0).astype(np.float64)
    # The factors of `equal_weights`, and that of `expected`. A single token is weighed by 1/1 and rounds once.
    limit = np.where(number > 1, (len(tokens) + 4) * U * np.abs(expected), 0)
    exact = _exact_splits(got, scores, tokens, tokens[..., None] * values)
    return worst(*(_but(silent, each) for each in exact), *_outputs(got, expected, limit))


def two_levels(design: Design, lengths: Lengths, got: Got) -> Measured:
    """Two scores in each line: lse = ln(sum of n_c e^score_c) in each split, out = sum of pi_c V_c, in FP64."""
    counts = _counts(design, lengths)
    scores, errors = _scores(design)
    shares, top, sums = _softmax(scores, counts)
    seen = sums > 0
    expected = np.where(seen, top + np.log(np.where(seen, sums, 1)), 0)
    # Of the sum: 5 levels of the tree, one fma a tile. Exact where nothing is seen: (-1e30, 0).
    inherited = (shares * errors(top)).sum(axis=-1)
    limit = np.where(seen, inherited + (_tiles(lengths) + 6) * U, 0)
    stored = got["lse"][: len(counts), : len(lengths)].astype(np.float64)
    with np.errstate(all="ignore"):
        value = np.where(seen, stored[..., 0] + np.log(stored[..., 1]), stored[..., 0] - _NOTHING + stored[..., 1])
    lse = measured("lse split, row, head", value, expected, limit)
    return worst(lse, *_outputs(got, *_mixture(design, lengths)))


def constant_values(design: Design, lengths: Lengths, got: Got) -> Measured:
    """V depends on d alone: out is v_scale * V, since the numerator and the sum have the same inexact weights."""
    return worst(*_outputs(got, *_mixture(design, lengths)))


# ---- What they share --------------------------------------------------------------------------------------------


def _mixture(design: Design, lengths: Lengths) -> tuple[Array64, Array64]:
    """v_scale * sum of pi_c V_c and how far the output before its rounding may be from it, f64 [rows, heads, dim].

    First, an error of a weight moves the output in proportion to V_c - out. Second, what differs between numerator
    and sum, in units of u and of A = sum of pi_c |V_c|; T tiles are the most in a split, S the splits:
      P + R*2^-11 is p to 2^-23 p, or to 2^-36 where f16 is subnormal, and 3,328 * 2^-36 < u: 3;
      the products: a step over L terms and c truncates L + 1 terms below 2^-F of the largest, and its sum below
      2^-23. With 64/L steps a tile that is 42 u on sm_90, 88 on sm_80 and 192 on sm_70: 192, and 1 for operands
      that are subnormal;
      the tree over p: 5; one fma a tile in numerator and sum: 2 T; one a split in the merge, twice: 2 S;
      v_scale, 1/sum, weight * (1/sum): 3.
    """
    scores, errors = _scores(design)
    counts = _counts(design, lengths)
    shares, top, _ = _softmax(scores, counts.sum(axis=0))
    values = design.value_numbers
    out = shares @ values
    spread = np.stack([np.abs(values - out[..., d, None]) for d in ()]) if False else 0
    return _GAIN * out, _GAIN * (spread + 1)
