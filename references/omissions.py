"""Which omitted tokens bound 3 could show at all: under peaked attention most tokens weigh next to nothing."""

import numpy as np
from numpy.typing import NDArray

from .attention import Array64, AttentionFP64
from .bounds import precast_bound
from .paging import gather_tokens
from .splits import total_of

_BLOCK = 4096


def omission_share(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    fp64: AttentionFP64,
) -> float:
    """The share of all (row, head, visible token) whose omission moves the pre-cast output by over twice bound 3.

    q f16[rows, G, D]; k, v u8[pages, page, 1, D]; table i32[1, n]; lengths i32[rows]; fp64: of the same inputs.
    Without token j, o becomes (o - pi_j v_j) / (1 - pi_j): it moves by pi_j * ||v_j - o|| / (1 - pi_j), or by ||o|| if
    j was all there was. 0 where no row sees a token. Holds 8*rows*G*total bytes of scores.
    """
    rows, heads, dims = q.shape
    lines, total = rows * heads, total_of(lengths)
    if total == 0:
        return 0.0
    factor, gain = float(scale) * float(k_scale), float(v_scale)
    seen = np.repeat(np.maximum(lengths, 0), heads)[:, None]
    queries = np.where(seen > 0, q.reshape(lines, dims), np.float16(0)).astype(np.float64)
    scores = np.full((lines, total), -np.inf)
    blocks = [slice(start, min(start + _BLOCK, total)) for start in range(0, total, _BLOCK)]
    for block in blocks:
        dot = queries @ gather_tokens(k, table, block.stop, start=block.start).T
        scores[:, block] = np.where(np.arange(block.start, block.stop) < seen, factor * dot, -np.inf)

    # 1 - pi of the heaviest token cancels; what it leaves behind is summed without it instead.
    heaviest, line = scores.argmax(axis=1), np.arange(lines)
    peak = np.where(seen[:, 0] > 0, scores[line, heaviest], 0)
    others = scores.copy()
    others[line, heaviest] = -np.inf
    second = others.max(axis=1)
    second = np.where(np.isneginf(second), 0, second)
    rest, rest_sum = np.zeros((lines, dims)), np.zeros(lines)
    for block in blocks:
        weights = np.exp(others[:, block] - second[:, None])
        rest += weights @ gather_tokens(v, table, block.stop, start=block.start)
        rest_sum += weights.sum(axis=1)
    rest /= np.where(rest_sum > 0, rest_sum, 1)[:, None]
    beside = rest_sum * np.exp(second - peak)
    share_of_heaviest = 1 / (1 + beside)

    limit = 2 * precast_bound(fp64).reshape(lines) / gain
    center = fp64.out.reshape(lines, dims) / gain
    detectable = 0
    for block in blocks:
        values = gather_tokens(v, table, block.stop, start=block.start)
        pi = np.exp(others[:, block] - peak[:, None]) * share_of_heaviest[:, None]
        detectable += int((pi / (1 - pi) * _distance(values, center) > limit[:, None]).sum())
    for one in np.flatnonzero(seen[:, 0]):
        value = gather_tokens(v, table, int(heaviest[one]) + 1, start=int(heaviest[one]))[0]
        detectable += bool(share_of_heaviest[one] * np.linalg.norm(value - rest[one]) > limit[one])
    return detectable / int(seen.sum())


def _distance(values: Array64, center: Array64) -> Array64:
    """||v_j - o||, [lines, tokens], from the squares: 1e-8 of the larger norm is lost, and far below any bound."""
    square = np.square(values).sum(axis=1) - 2 * center @ values.T + np.square(center).sum(axis=1)[:, None]
    return np.asarray(np.sqrt(np.maximum(square, 0)))
