"""The omitted tokens that bound 3 can detect: under peaked attention most tokens have almost no weight."""

import numpy as np
from numpy.typing import NDArray

from .array_library import NUMPY, ArrayLibrary, DeviceArray
from .attention import AttentionFP64, lines_of
from .bounds import precast_bound
from .paging import gather_codes, gather_tokens
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
    library: ArrayLibrary = NUMPY,
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
    factor, gain, xp = float(scale) * float(k_scale), float(v_scale), library.xp
    blocks = [slice(start, min(start + _BLOCK, total)) for start in range(0, total, _BLOCK)]

    def tokens_of(storage: NDArray[np.uint8], block: slice) -> DeviceArray:
        return library.decoded(gather_codes(storage, table, block.stop, start=block.start))

    seen, queries = lines_of(q, lengths, library)
    others = library.full((lines, total), -np.inf)  # scores; those of the heaviest tokens are removed below
    for block in blocks:
        visible = library.to_device(np.arange(block.start, block.stop)) < seen
        others[:, block] = xp.where(visible, factor * (queries @ tokens_of(k, block).T), -np.inf)

    # 1 - pi of the heaviest token cancels; what it leaves behind is summed without it instead.
    heaviest, line = xp.argmax(others, axis=1), library.to_device(np.arange(lines))
    peak = xp.where(seen[:, 0] > 0, others[line, heaviest], 0)
    others[line, heaviest] = -np.inf
    second = xp.amax(others, axis=1)
    second = xp.where(xp.isneginf(second), 0, second)
    rest, rest_sum = library.full((lines, dims), 0), library.full((lines,), 0)
    for block in blocks:
        weights = xp.exp(others[:, block] - second[:, None])
        rest += weights @ tokens_of(v, block)
        rest_sum += weights.sum(axis=1)
    rest /= xp.where(rest_sum > 0, rest_sum, 1)[:, None]
    beside = rest_sum * xp.exp(second - peak)
    share_of_heaviest = 1 / (1 + beside)

    limit = 2 * precast_bound(fp64).reshape(lines) / gain
    device_limit, center = library.to_device(limit), library.to_device(fp64.out.reshape(lines, dims) / gain)
    detectable = 0
    for block in blocks:
        pi = xp.exp(others[:, block] - peak[:, None]) * share_of_heaviest[:, None]
        moved = pi / (1 - pi) * _distance(tokens_of(v, block), center, library)
        detectable += int((moved > device_limit[:, None]).sum())
    heaviest, rest, share = (library.to_numpy(x) for x in (heaviest, rest, share_of_heaviest))
    visible_tokens = np.repeat(np.maximum(lengths, 0), heads)
    for one in np.flatnonzero(visible_tokens):
        value = gather_tokens(v, table, int(heaviest[one]) + 1, start=int(heaviest[one]))[0]
        detectable += bool(share[one] * np.linalg.norm(value - rest[one]) > limit[one])
    return detectable / int(visible_tokens.sum())


def _distance(values: DeviceArray, center: DeviceArray, library: ArrayLibrary) -> DeviceArray:
    """||v_j - o||, [lines, tokens], from the squares: 1e-8 of the larger norm is lost, and far below any bound."""
    square = library.xp.square(values).sum(axis=1) - 2 * center @ values.T
    return library.xp.sqrt((square + library.xp.square(center).sum(axis=1)[:, None]).clip(0))
