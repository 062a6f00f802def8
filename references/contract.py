"""The grouped operator bit for bit, from the text of kernels/CONTRACT.md alone.

Every binary32 operation below is one that the contract names, in its order. Vectorised over lines, which are
the rows*G pairs of (row, head), and over columns or dimensions; tiles and splits run one after another.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit.formats import fma32

from .binary32 import Array32, add32, exp32_floored, max32, tree
from .merge import NOTHING_SEEN, merge
from .paging import gather_tokens
from .splits import CAPACITY_ROWS, CAPACITY_SPLITS, TILE, splits, total_of
from .tensor_core import SM_90, TensorCore, product

_K16 = 16
_RESIDUAL_GAIN = 2048


def kahan_products(queries: NDArray[np.float16], keys: NDArray[np.float16], model: TensorCore) -> Array32:
    """q.k f32[lines, tokens]: one tensor-core product with C = 0 for every 16 dimensions, summed by Kahan."""
    total = np.zeros((len(queries), len(keys)), np.float32)
    compensation = np.zeros_like(total)
    for start in range(0, queries.shape[1], _K16):
        chunk = slice(start, start + _K16)
        t = product(queries[:, chunk], keys[:, chunk].T, np.zeros((1, 1), np.float32), model)
        y = t - compensation
        following = total + y
        compensation = (following - total) - y
        total = following
    return total


def weighted_values(p: Array32, values: NDArray[np.float16], model: TensorCore) -> Array32:
    """PV of one tile, f32[lines, D]: p as its f16 rounding P and the residual R, in one chain of products."""
    rounded = p.astype(np.float16)
    residual = ((p - rounded.astype(np.float32)) * np.float32(_RESIDUAL_GAIN)).astype(np.float16)
    scaled = values * np.float16(1 / _RESIDUAL_GAIN)  # exact for every finite e4m3
    accumulator = np.zeros((1, 1), np.float32)
    for start in range(0, TILE, _K16):
        half = slice(start, start + _K16)
        accumulator = product(rounded[:, half], values[half], accumulator, model)
        accumulator = product(residual[:, half], scaled[half], accumulator, model)
    return accumulator


def sees(token: NDArray[np.int64], length: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which rows see which tokens, bool[lines, tokens]; length i32[lines, 1]."""
    return token < length


@dataclass(frozen=True)
class GroupedSteps:
    """The steps of the contract; `mutations` replaces one at a time."""

    visible: Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.bool_]] = sees
    dot: Callable[[NDArray[np.float16], NDArray[np.float16], TensorCore], Array32] = kahan_products
    exp: Callable[[Array32], Array32] = exp32_floored
    weigh: Callable[[Array32, NDArray[np.float16], TensorCore], Array32] = weighted_values


CONTRACT = GroupedSteps()


@dataclass(frozen=True, eq=False)
class GroupedContract:
    """What the contract writes; NaN stands for elements that it does not write."""

    out: NDArray[np.float16]
    """f16[rows, G, D]; NaN unless all splits were computed."""
    precast: Array32
    """f32[rows, G, D]: the merge before its rounding to f16; NaN unless all splits were computed."""
    partial: Array32
    """f32[80, 8, G, D]: the unnormalised numerator times v_scale."""
    lse: Array32
    """f32[80, 8, G, 2]: maximum and sum."""
    written: NDArray[np.bool_]
    """bool[80, 8]: which (split, row) of partial and lse are written."""


def grouped_contract(
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
    model: TensorCore = SM_90,
    steps: GroupedSteps = CONTRACT,
) -> GroupedContract:
    """The contract's bytes for q f16[rows, G, D], k, v u8[pages, page, 1, D], table i32[1, n], lengths.

    `chosen` restricts the work to some active splits, for long contexts; `written` then names those only, and
    out and precast stay NaN. The inputs must lie in the contract's domain (`domain.check_domain`).
    """
    rows, heads, dims = q.shape
    total = total_of(lengths)
    parts = splits(total)
    partial = np.full((CAPACITY_SPLITS, CAPACITY_ROWS, heads, dims), np.nan, np.float32)
    lse = np.full((CAPACITY_SPLITS, CAPACITY_ROWS, heads, 2), np.nan, np.float32)
    written = np.zeros((CAPACITY_SPLITS, CAPACITY_ROWS), np.bool_)
    seen = np.repeat(np.maximum(lengths, 0), heads)[:, None]
    # q of a row of length 0 may be NaN: it would meet only invisible columns, but cost the product its pace.
    queries = np.where(seen > 0, q.reshape(rows * heads, dims), np.float16(0))
    score_scale = np.float32(scale) * np.float32(k_scale)

    for s, tokens in enumerate(parts):
        if chosen is not None and s not in chosen:
            continue
        padded = -(-len(tokens) // TILE) * TILE
        keys, values = (np.zeros((padded, dims), np.float16) for _ in range(2))
        keys[: len(tokens)] = gather_tokens(k, table, tokens.stop, start=tokens.start, dtype=np.float16)
        values[: len(tokens)] = gather_tokens(v, table, tokens.stop, start=tokens.start, dtype=np.float16)
        scores = steps.dot(queries, keys, model) * score_scale
        visible = steps.visible(np.arange(tokens.start, tokens.start + padded), seen)
        maximum, sums, out = _online_softmax(scores, visible, values, model, steps)
        with np.errstate(over="ignore"):
            partial[s, :rows] = (out * np.float32(v_scale) + np.float32(0)).reshape(q.shape)
        lse[s, :rows] = np.stack([maximum, sums], axis=-1).reshape(rows, heads, 2)
        written[s, :rows] = True

    if written[: len(parts), :rows].all():
        precast = merge(partial, lse, lengths, total)
    else:
        precast = np.full(q.shape, np.nan, np.float32)
    with np.errstate(over="ignore"):
        out16 = precast.astype(np.float16)
    return GroupedContract(out=out16, precast=precast, partial=partial, lse=lse, written=written)


def _online_softmax(
    scores: Array32, visible: NDArray[np.bool_], values: NDArray[np.float16], model: TensorCore, steps: GroupedSteps
) -> tuple[Array32, Array32, Array32]:
    """(max, sum, out) of one split: f32[lines], f32[lines], f32[lines, D], tile by tile."""
    lines, dims = len(scores), values.shape[1]
    maximum = np.full(lines, NOTHING_SEEN)
    sums = np.zeros(lines, np.float32)
    out = np.zeros((lines, dims), np.float32)
    for start in range(0, scores.shape[1], TILE):
        tile = slice(start, start + TILE)
        shown = visible[:, tile]
        active = np.asarray(shown.any(axis=1))
        score = np.where(shown, scores[:, tile], NOTHING_SEEN)
        following = max32(maximum, tree(max32, score))
        p = np.where(shown, steps.exp(score - following[:, None]), np.float32(0))
        tile_sum = tree(add32, p)
        rescale = np.where(sums > 0, steps.exp(maximum - following), np.float32(1))
        tile_out = steps.weigh(p, values[tile], model)
        sums = np.where(active, fma32(sums, rescale, tile_sum), sums)
        out = np.where(active[:, None], fma32(out, rescale[:, None], tile_out), out)
        maximum = np.where(active, following, maximum)
    return maximum, sums, out
