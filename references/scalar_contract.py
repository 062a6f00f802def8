"""The scalar operator bit for bit, from the text of kernels/CONTRACT.md alone.

Every binary32 operation below is one that the contract names, in its order. Vectorised over heads, partitions,
threads and dimensions. A slot past the end of a partition holds the score -inf and p = +0. The contract has no such
slot, but max(m, -inf) is m and x + 0 is x, so neither shows.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit.formats import fma32

from .binary32 import Array32, add32, exp32_floored, max32, tree
from .paging import gather_tokens
from .splits import CAPACITY_PARTITIONS, PARTITION, partitions, total_of

LOWEST = np.float32(-1e20)
"""Where a thread's maximum starts."""
_THREADS = 256
_LANES = 32


def sees(token: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Which tokens the row sees, bool[tokens]."""
    return token < length


def unrounded(p: Array32) -> Array32:
    """p enters PV as it is."""
    return p


@dataclass(frozen=True)
class ScalarSteps:
    """The steps of the contract; `scalar_mutations` replaces one at a time."""

    visible: Callable[[NDArray[np.int64], int], NDArray[np.bool_]] = sees
    exp: Callable[[Array32], Array32] = exp32_floored
    weigh: Callable[[Array32], Array32] = unrounded


CONTRACT = ScalarSteps()


@dataclass(frozen=True, eq=False)
class ScalarContract:
    """What the contract writes; NaN stands for elements that it does not write."""

    out: NDArray[np.float16]
    """f16[1, G, D]; NaN unless all partitions were computed."""
    precast: Array32
    """f32[1, G, D]: the reducer before its rounding to f16; NaN unless all partitions were computed."""
    partial: Array32
    """f32[1, G, 256, D], normalised and v-scaled."""
    maximum: Array32
    """f32[1, G, 256]"""
    sums: Array32
    """f32[1, G, 256]"""
    written: NDArray[np.bool_]
    """bool[256]: which partitions of partial, maximum and sums are written."""


def scalar_contract(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    chosen: Collection[int] | None = None,
    steps: ScalarSteps = CONTRACT,
) -> ScalarContract:
    """The contract's bytes for q f16[1, G, D], k, v u8[pages, page, 1, D], table i32[1, n], lengths i32[1].

    `chosen` restricts the work to some partitions, for long contexts; `written` then names those only, and out and
    precast stay NaN. The inputs must lie in the contract's domain (`domain.check_domain`). Some 1.5 s for 8,192
    tokens, 6 heads and 256 dimensions.
    """
    _, heads, dims = q.shape
    total = total_of(lengths)
    parts = partitions(total)
    partial = np.full((1, heads, CAPACITY_PARTITIONS, dims), np.nan, np.float32)
    maximum, sums = (np.full((1, heads, CAPACITY_PARTITIONS), np.nan, np.float32) for _ in range(2))
    written = np.zeros(CAPACITY_PARTITIONS, np.bool_)
    selected = [i for i in range(len(parts)) if chosen is None or i in chosen]
    if selected:
        score = np.full((heads, len(selected), PARTITION), -np.inf, np.float32)
        values = np.zeros((len(selected), PARTITION, dims), np.float32)
        score_scale = np.float32(scale) * np.float32(k_scale)
        for slot, tokens in enumerate(parts[i] for i in selected):
            keys, values[slot, : len(tokens)] = (
                gather_tokens(side, table, tokens.stop, start=tokens.start, dtype=np.float32) for side in (k, v)
            )
            dot = _dot(q[0].astype(np.float32), keys)
            shown = steps.visible(np.arange(tokens.start, tokens.stop), total)
            score[:, slot, : len(tokens)] = np.where(shown, dot * score_scale, np.float32(-np.inf))
        counts = [len(parts[i]) for i in selected]
        found = _partition(score, values, counts, np.float32(v_scale), steps)
        for buffer, computed in zip((maximum, sums, partial), found, strict=True):
            buffer[0][:, selected] = computed
        written[selected] = True

    if written[: len(parts)].all():
        precast = scalar_merge(partial, maximum, sums, total)
    else:
        precast = np.full(q.shape, np.nan, np.float32)
    with np.errstate(over="ignore"):
        out = precast.astype(np.float16)
    return ScalarContract(out=out, precast=precast, partial=partial, maximum=maximum, sums=sums, written=written)


def scalar_merge(partial: Array32, maximum: Array32, sums: Array32, length: int) -> Array32:
    """The reducer: the pre-cast output f32[1, G, D] from partial f32[1, G, 256, D], maximum and sums f32[1, G, 256].

    Reads the partitions of `length`; zeros for a length <= 0. `out` must be its rounding to f16. The workspace may be
    one that a kernel left.
    """
    active = len(partitions(length))
    if active == 0:
        return np.zeros((*partial.shape[:2], partial.shape[3]), np.float32)
    threads = (*maximum.shape[:2], _THREADS)
    highest, weights = np.full(threads, LOWEST), np.zeros(threads, np.float32)
    with np.errstate(all="ignore"):  # an audited workspace may hold anything
        highest[..., :active] = maximum[..., :active]
        top = _trees(max32, highest)[..., None]
        weights[..., :active] = sums[..., :active] * exp32_floored(maximum[..., :active] - top)
        total = _trees(add32, weights)
        merged = np.zeros((*partial.shape[:2], partial.shape[3]), np.float32)
        for i in range(active):
            merged = fma32(weights[..., i, None], partial[..., i, :], merged)
        return np.asarray(merged * (np.float32(1) / total)[..., None])


def _dot(queries: Array32, keys: Array32) -> Array32:
    """q.k f32[G, tokens]: lane l sums over d = l, l+32, ..., then the tree over the lanes."""
    lanes = np.zeros((len(queries), len(keys), _LANES), np.float32)
    for start in range(0, queries.shape[1], _LANES):
        d = slice(start, start + _LANES)
        lanes = fma32(queries[:, None, d], keys[None, :, d], lanes)
    return tree(add32, lanes)


def _partition(
    score: Array32, values: Array32, counts: list[int], v_scale: np.float32, steps: ScalarSteps
) -> tuple[Array32, Array32, Array32]:
    """(maximum f32[G, parts], sums f32[G, parts], partial f32[G, parts, D]) of score f32[G, parts, 1024]."""
    rounds = (*score.shape[:2], PARTITION // _THREADS, _THREADS)
    highest = np.full((*score.shape[:2], _THREADS), LOWEST)
    for one in np.moveaxis(score.reshape(rounds), 2, 0):
        highest = max32(highest, one)
    maximum = _trees(max32, highest)
    p = np.where(np.isneginf(score), np.float32(0), steps.exp(score - maximum[..., None]))
    thread_sum = np.zeros_like(highest)
    for one in np.moveaxis(p.reshape(rounds), 2, 0):
        thread_sum = thread_sum + one
    sums = _trees(add32, thread_sum)

    weights = steps.weigh(p)
    numerator = np.zeros((*score.shape[:2], values.shape[2]), np.float32)
    for i in range(max(counts)):
        running = [slot for slot, count in enumerate(counts) if i < count]
        numerator[:, running] = fma32(weights[:, running, i, None], values[running, i], numerator[:, running])
    with np.errstate(all="ignore"):  # overflow of a large v_scale
        return maximum, sums, numerator * ((np.float32(1) / sums) * v_scale)[..., None]


def _trees(combine: Callable[[Array32, Array32], Array32], x: Array32) -> Array32:
    """Over 256 threads, the last axis: a tree over the 32 lanes of each warp, then one over the 8 warps."""
    return tree(combine, tree(combine, x.reshape(*x.shape[:-1], _THREADS // _LANES, _LANES)))
