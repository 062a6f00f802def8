"""Attention in FP64, unrounded, with the ingredients of its error bounds; what both operators share.

For a row that sees tokens j < length: score_j = scale*k_scale * q.k_j, pi = softmax(score) and
o = v_scale * sum pi_j v_j. scale*k_scale is exact in f64 (48 bits), and so is q.k_j unless the exponents of
q span more than 53 bits, hence weights come from differences of q.k_j: they keep their 15 digits however
large the scores are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .paging import gather_tokens
from .splits import total_of
from .underflow import FLOOR

Array64 = NDArray[np.float64]
Loss = Callable[[Array64, NDArray[np.bool_], Array64], Array64]
"""(p, visible, values) -> what the format of p loses: see `underflow`."""

_K16 = 16
_CACHED_TOKENS = 512


@dataclass(frozen=True, eq=False)
class AttentionFP64(ABC):
    """Results and bound ingredients; the `partial_` ones take the softmax over one part's tokens alone.

    A part is a split (grouped) or a partition (scalar). Where a row sees nothing everything is 0, and lse is -inf.
    """

    out: Array64
    """f64[rows, G, D]: o."""
    lse: Array64
    """f64[rows, G]: ln sum exp(score_j), natural."""
    seen: Array64
    """f64[rows, G]: n, how many tokens are visible."""
    mass: Array64
    """f64[rows, G, D]: A = sum pi_j |v_j|, v_scale included."""
    spread: Array64
    """f64[rows, G, D]: B = sum pi_j |v_j - o|, v_scale included."""
    reach: Array64
    """f64[rows, G]: S = max over visible j of scale*k_scale * sum of |q.k_j within a K16 chunk|."""
    loss: Array64
    """f64[rows, G, D]: U, what small probabilities lose at most (see `underflow`), v_scale included; mostly 0."""
    partial: Array64
    """f64[parts, rows, G, D]: o of each part, normalised."""
    partial_lse: Array64
    """f64[parts, rows, G]"""
    partial_seen: Array64
    """f64[parts, rows, G]: n of each part."""
    partial_mass: Array64
    """f64[parts, rows, G, D]: A of each part."""
    partial_spread: Array64
    """f64[parts, rows, G, D]: B of each part."""
    partial_reach: Array64
    """f64[parts, rows, G]: S of each part."""
    partial_loss: Array64
    """f64[parts, rows, G, D]: U of each part."""

    @staticmethod
    @abstractmethod
    def accumulation(seen: Array64) -> Array64:
        """The factor of ||A|| in bound 3, f64[...] for n f64[...] tokens: how the operator's sums over them round."""


def attention_fp64(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    parts: Sequence[range],
    capacity: int,
    loss: Loss,
) -> dict[str, Array64]:
    """The fields of `AttentionFP64` for q f16[rows, G, D] over k, v u8[pages, page, 1, D] through table i32[1, n].

    `parts` cover tokens 0..total-1 in ascending order; the `partial_` arrays have `capacity` parts, zeros (lse: -inf)
    behind the given ones. The inputs must lie in the contract's domain (`domain.check_domain`). Works one part at a
    time: beside the result it holds 8*rows*G*total bytes of scores and, with parts of 3,328 tokens, some 60 MiB.
    """
    rows, heads, dims = q.shape
    lines = rows * heads  # one line for each (row, head)
    factor, gain = float(scale) * float(k_scale), float(v_scale)
    seen = np.repeat(np.maximum(lengths, 0), heads)[:, None]
    # q of a row of length 0 may be NaN and must not reach anything.
    queries = np.where(seen > 0, q.reshape(lines, dims), np.float16(0)).astype(np.float64)

    dots = np.empty((lines, total_of(lengths)))
    peak = np.full((capacity, lines), -np.inf)
    norm, reach, count = (np.zeros_like(peak) for _ in range(3))
    partial, mass, spread, lost = (np.zeros((capacity, lines, dims)) for _ in range(4))
    for s, tokens in enumerate(parts):
        visible = np.arange(tokens.start, tokens.stop) < seen
        dot, absolute = _dot_products(queries, gather_tokens(k, table, tokens.stop, start=tokens.start))
        dot[~visible] = -np.inf
        dots[:, tokens.start : tokens.stop] = dot
        reach[s] = factor * np.where(visible, absolute, 0).max(axis=1)
        peak[s], count[s] = dot.max(axis=1), visible.sum(axis=1)
        weights = _exp_difference(factor, dot, peak[s][:, None])
        norm[s] = weights.sum(axis=1)
        divisor = np.where(norm[s] > 0, norm[s], 1)[:, None]
        values = gather_tokens(v, table, tokens.stop, start=tokens.start)
        lost[s] = loss(weights, visible, values) / divisor
        weights /= divisor
        partial[s], mass[s] = weights @ values, weights @ np.abs(values)
        spread[s] = _spread(_mean_of_maximum(weights, values, partial[s]), partial[s])

    top = peak.max(axis=0)
    against_top = _exp_difference(factor, peak, top)
    shares = norm * against_top
    whole = shares.sum(axis=0)
    divisor = np.where(whole > 0, whole, 1)
    shares /= divisor
    floored = norm * np.maximum(against_top, FLOOR) / divisor
    out, out_mass = (np.einsum("sl,sld->ld", shares, each) for each in (partial, mass))
    out_lost = np.einsum("sl,sld->ld", floored, lost) + np.einsum("sl,sld->ld", floored - shares, mass)
    above = np.zeros_like(out)
    for tokens in parts:  # once more: the spread about the whole row's o, known only now
        weights = _exp_difference(factor, dots[:, tokens.start : tokens.stop], top[:, None])
        weights /= divisor[:, None]
        above += _mean_of_maximum(weights, gather_tokens(v, table, tokens.stop, start=tokens.start), out)

    by_line, by_part = (rows, heads), (capacity, rows, heads)
    return {
        "out": gain * out.reshape(q.shape),
        "lse": _lse(factor, top, whole).reshape(by_line),
        "seen": count.sum(axis=0).reshape(by_line),
        "mass": gain * out_mass.reshape(q.shape),
        "spread": gain * _spread(above, out).reshape(q.shape),
        "reach": reach.max(axis=0).reshape(by_line),
        "loss": gain * out_lost.reshape(q.shape),
        "partial": gain * partial.reshape(*by_part, dims),
        "partial_lse": _lse(factor, peak, norm).reshape(by_part),
        "partial_seen": count.reshape(by_part),
        "partial_mass": gain * mass.reshape(*by_part, dims),
        "partial_spread": gain * spread.reshape(*by_part, dims),
        "partial_reach": reach.reshape(by_part),
        "partial_loss": gain * lost.reshape(*by_part, dims),
    }


def _dot_products(queries: Array64, keys: Array64) -> tuple[Array64, Array64]:
    """q.k [lines, tokens], and the sum over K16 chunks of each chunk's absolute value."""
    dot, absolute = np.zeros((2, len(queries), len(keys)))
    for start in range(0, queries.shape[1], _K16):
        chunk = queries[:, start : start + _K16] @ keys[:, start : start + _K16].T
        dot += chunk
        absolute += np.abs(chunk, out=chunk)
    return dot, absolute


def _exp_difference(factor: float, dot: Array64, peak: Array64) -> Array64:
    """exp(factor*(dot - peak)), 0 where dot is -inf; a peak of -inf has nothing but such below it."""
    return np.exp(factor * (dot - np.where(np.isneginf(peak), 0, peak)))


def _mean_of_maximum(weights: Array64, values: Array64, center: Array64) -> Array64:
    """sum_j weights[l, j] * max(values[j, d], center[l, d]): the one step that no matrix product gives."""
    total = np.zeros_like(center)
    scratch = np.empty((_CACHED_TOKENS, values.shape[1]))
    for start in range(0, len(values), _CACHED_TOKENS):
        block = values[start : start + _CACHED_TOKENS]
        for line, weight in enumerate(weights[:, start : start + len(block)]):
            total[line] += weight @ np.maximum(block, center[line], out=scratch[: len(block)])
    return total


def _spread(mean_of_maximum: Array64, center: Array64) -> Array64:
    """sum pi|v - o| from sum pi max(v, o): |v - o| = 2 max(v, o) - v - o, and sum pi v = o, sum pi = 1.

    Its absolute error is that of f64 on o itself; a spread of 0 may come out as 1e-16 |o|.
    """
    return np.maximum(2 * (mean_of_maximum - center), 0)


def _lse(factor: float, peak: Array64, norm: Array64) -> Array64:
    seen = norm > 0
    return np.where(seen, factor * np.where(seen, peak, 0) + np.log(np.where(seen, norm, 1)), -np.inf)
