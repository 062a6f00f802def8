"""Attention in FP64, unrounded, with the ingredients of its error bounds. Both operators use it.

For a row that sees tokens j < length: score_j = scale*k_scale * q.k_j, pi = softmax(score) and
o = v_scale * sum pi_j v_j. scale*k_scale is exact in f64 (48 bits), and so is q.k_j unless the exponents of
q span more than 53 bits. Weights come from differences of q.k_j, so they keep their 15 digits however large
the scores are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit import ProjectError

from .array_library import NUMPY, Array64, ArrayLibrary, DeviceArray
from .paging import gather_codes
from .splits import total_of
from .underflow import FLOOR

Loss = Callable[[DeviceArray, DeviceArray, DeviceArray], DeviceArray]
"""(p, visible, values) -> the loss from the format of p: see `underflow`."""

FP64_ERROR = 1e-13
"""Relative L2 of `attention_fp64` against `exact`, at most."""
_K16 = 16


@dataclass(frozen=True, eq=False)
class AttentionFP64(ABC):
    """Results and ingredients of bounds. For the `partial_` ones the softmax is over the tokens of one part alone.

    A part is a split (grouped) or a partition (scalar). Where a row sees nothing, all fields are 0 and lse is -inf.
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
    """f64[rows, G, D]: U, the most that small probabilities lose (see `underflow`), v_scale included; mostly 0."""
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
        """The factor of ||A|| in bound 3, f64[...] for n f64[...] tokens: the rounding of sums over them."""


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
    library: ArrayLibrary = NUMPY,
) -> dict[str, Array64]:
    """The fields of `AttentionFP64` for q f16[rows, G, D] over k, v u8[pages, page, 1, D] through table i32[1, n].

    `parts` cover tokens 0..total-1 in ascending order; the `partial_` arrays have `capacity` parts, with zeros (lse:
    -inf) after the given ones. The inputs must lie in the contract's domain (`domain.check_domain`). The function works
    one part at a time: beside the result it holds 8*rows*G*total bytes of scores and, with parts of 3,328 tokens, some
    60 MiB. Results of a library other than numpy are compared with numpy's in the last part of one row; raises
    ProjectError where they differ.
    """
    inputs, scales = (q, k, v, table, lengths), {"scale": scale, "k_scale": k_scale, "v_scale": v_scale}
    fields = _fields(*inputs, **scales, parts=parts, capacity=capacity, loss=loss, library=library)
    if library is not NUMPY and parts:
        row = int(np.argmax(lengths))
        alone = (q[row : row + 1], k, v, table, lengths[row : row + 1])
        measure = _fields(*alone, **scales, parts=parts[-1:], capacity=1, loss=loss, library=NUMPY)
        _compare(library, fields, measure, len(parts) - 1, row)
    return fields


def _fields(
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
    library: ArrayLibrary,
) -> dict[str, Array64]:
    rows, heads, dims = q.shape
    lines = rows * heads  # one line for each (row, head)
    factor, gain = float(scale) * float(k_scale), float(v_scale)
    xp, seen, queries = library.xp, *lines_of(q, lengths, library)

    def tokens_of(storage: NDArray[np.uint8], tokens: range) -> DeviceArray:
        return library.decoded(gather_codes(storage, table, tokens.stop, start=tokens.start))

    dots = library.full((lines, total_of(lengths)), -np.inf)
    device_peak = library.full((capacity, lines), -np.inf)
    on_device = [library.full((capacity, lines), 0) for _ in range(3)]
    on_device += [library.full((capacity, lines, dims), 0) for _ in range(4)]
    for s, tokens in enumerate(parts):
        visible = library.to_device(np.arange(tokens.start, tokens.stop)) < seen
        dot, absolute = _dot_products(queries, tokens_of(k, tokens), library)
        dot = dots[:, tokens.start : tokens.stop] = xp.where(visible, dot, -np.inf)
        peak = xp.amax(dot, axis=1)
        weights = _exp_difference(factor, dot, peak[:, None], library)
        norm = weights.sum(axis=1)
        divisor = xp.where(norm > 0, norm, 1)[:, None]
        values = tokens_of(v, tokens)
        lost = loss(weights, visible, values) / divisor
        weights /= divisor
        partial, mass = weights @ values, weights @ xp.abs(values)
        spread = _spread(library.mean_of_maximum(weights, values, partial), partial)
        reach = factor * xp.amax(xp.where(visible, absolute, 0), axis=1)
        device_peak[s] = peak
        for whole, each in zip(on_device, (norm, reach, visible.sum(axis=1), partial, mass, spread, lost), strict=True):
            whole[s] = each

    peak, (norm, reach, count, partial, mass, spread, lost) = (
        library.to_numpy(device_peak),
        map(library.to_numpy, on_device),
    )
    top = peak.max(axis=0)
    against_top = _exp_difference(factor, peak, top)
    shares = norm * against_top
    whole = shares.sum(axis=0)
    divisor = np.where(whole > 0, whole, 1)
    shares /= divisor
    floored = norm * np.maximum(against_top, FLOOR) / divisor
    out, out_mass = (np.einsum("sl,sld->ld", shares, each) for each in (partial, mass))
    out_lost = np.einsum("sl,sld->ld", floored, lost) + np.einsum("sl,sld->ld", floored - shares, mass)
    device_top, device_divisor, center = (library.to_device(x) for x in (top[:, None], divisor[:, None], out))
    above = library.full((lines, dims), 0)
    for tokens in parts:  # a second pass: the spread about o of the whole row, which is known only now
        weights = _exp_difference(factor, dots[:, tokens.start : tokens.stop], device_top, library)
        weights /= device_divisor
        above += library.mean_of_maximum(weights, tokens_of(v, tokens), center)

    by_line, by_part = (rows, heads), (capacity, rows, heads)
    return {
        "out": gain * out.reshape(q.shape),
        "lse": _lse(factor, top, whole).reshape(by_line),
        "seen": count.sum(axis=0).reshape(by_line),
        "mass": gain * out_mass.reshape(q.shape),
        "spread": gain * _spread(library.to_numpy(above), out).reshape(q.shape),
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


def lines_of(
    q: NDArray[np.float16], lengths: NDArray[np.int32], library: ArrayLibrary
) -> tuple[DeviceArray, DeviceArray]:
    """(seen i64[lines, 1], queries f64[lines, D]): a line for each (row, head), and how many tokens it sees.

    q of a row of length 0 may be NaN and must not reach any result: it is 0 here.
    """
    rows, heads, dims = q.shape
    seen = np.repeat(np.maximum(lengths, 0), heads)[:, None].astype(np.int64)
    queries = np.where(seen > 0, q.reshape(rows * heads, dims), np.float16(0)).astype(np.float64)
    return library.to_device(seen), library.to_device(queries)


def _dot_products(queries: DeviceArray, keys: DeviceArray, library: ArrayLibrary) -> tuple[DeviceArray, DeviceArray]:
    """q.k [lines, tokens], and the sum over K16 chunks of each chunk's absolute value."""
    dot, absolute = (library.full((len(queries), len(keys)), 0) for _ in range(2))
    for start in range(0, queries.shape[1], _K16):
        chunk = queries[:, start : start + _K16] @ keys[:, start : start + _K16].T
        dot += chunk
        absolute += library.xp.abs(chunk, out=chunk)
    return dot, absolute


def _exp_difference(factor: float, dot: DeviceArray, peak: DeviceArray, library: ArrayLibrary = NUMPY) -> DeviceArray:
    """exp(factor*(dot - peak)), 0 where dot is -inf. Where the peak is -inf, so is every dot."""
    return library.xp.exp(factor * (dot - library.xp.where(library.xp.isneginf(peak), 0, peak)))


def _spread(mean_of_maximum: DeviceArray, center: DeviceArray) -> DeviceArray:
    """sum pi|v - o| from sum pi max(v, o): |v - o| = 2 max(v, o) - v - o, and sum pi v = o, sum pi = 1.

    Its absolute error is that of f64 on o itself; a spread of 0 may come out as 1e-16 |o|.
    """
    return (2 * (mean_of_maximum - center)).clip(0)


def _lse(factor: float, peak: Array64, norm: Array64) -> Array64:
    seen = norm > 0
    return np.where(seen, factor * np.where(seen, peak, 0) + np.log(np.where(seen, norm, 1)), -np.inf)


def _compare(
    library: ArrayLibrary, fields: dict[str, Array64], measure: dict[str, Array64], part: int, row: int
) -> None:
    """Raises ProjectError unless the fields of a row and part equal numpy's, `measure`, within `FP64_ERROR`.

    Errors of sums over V are relative to A, which no cancellation makes small; errors of lse and S to at least 1.
    """
    mass = float(np.linalg.norm(measure["partial_mass"]))
    for name, (expected,) in measure.items():
        if not name.startswith("partial"):
            continue
        found = fields[name][part, row]
        size = mass if found.ndim > 1 else max(1.0, float(np.linalg.norm(expected)))
        error = float(np.linalg.norm(found - expected[0]))
        if not error <= FP64_ERROR * size:
            raise ProjectError(
                f"FP64 by {library.name}: expected {name}[{part}, {row}] within {FP64_ERROR:g} of numpy's, but got"
                f" {error / (size or 1):.3g}; install a torch that computes in binary64, or none: numpy then does all"
            )
