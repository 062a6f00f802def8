"""Converts a model's float32 tensors to the kernels' inputs: f16 queries, E4M3 pages and their scales."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from audit.errors import CaptureError
from audit.formats import E4M3_MAX, encode_e4m3

RULES = {
    "q": "float32 of the model, after RoPE, rounded to binary16, ties to even",
    "k, v": "code = E4M3(x / scale): binary32 division, then nearest e4m3fn, ties to even, saturating at 448",
    "k_scale, v_scale": "largest |x| of the layer and rank / 448, in binary32; 1 where all are zero",
    "scale": "the softmax scale that the model passed to its attention, in binary32",
    "padding": "code 0 behind the last token of the last page",
}
"""The rules of `quantise` in words, for the manifest."""


class QuantisedTensor(msgspec.Struct, frozen=True, eq=False):
    """One rank's tensors as stored: q f16 [rows, G, D], k and v u8 [pages, page, 1, D]; scales are binary32."""

    q: NDArray[np.float16]
    k: NDArray[np.uint8]
    v: NDArray[np.uint8]
    k_scale: np.float32
    v_scale: np.float32


def quantise(
    q: NDArray[np.float32], k: NDArray[np.float32], v: NDArray[np.float32], *, rank: int, page: int
) -> QuantisedTensor:
    """One rank of q [heads, rows, D], k and v [ranks, tokens, D], all f32 as the attention function received them.

    Query head h belongs to KV head h // G with G = heads / ranks, the order of transformers' repeat_kv.
    Raises CaptureError if a value is not finite or does not fit binary16.
    """
    group = q.shape[0] // k.shape[0]
    own = q[rank * group : (rank + 1) * group].transpose(1, 0, 2)
    # An overflow becomes infinity, which raises below.
    with np.errstate(over="ignore"):
        half = np.ascontiguousarray(own.astype(np.float16))
    if not np.isfinite(half).all():
        raise CaptureError(f"q of rank {rank}: expected values that are finite in binary16, but some are not")
    k_pages, k_scale = _pages(k[rank], page, f"k of rank {rank}")
    v_pages, v_scale = _pages(v[rank], page, f"v of rank {rank}")
    return QuantisedTensor(half, k_pages, v_pages, k_scale, v_scale)


def _pages(x: NDArray[np.float32], page: int, what: str) -> tuple[NDArray[np.uint8], np.float32]:
    if not np.isfinite(x).all():
        raise CaptureError(f"{what}: expected finite values, but got infinity or NaN")
    largest = np.abs(x).max()
    scale = largest / np.float32(E4M3_MAX) if largest > 0 else np.float32(1)
    if not scale > 0:
        raise CaptureError(f"{what}: expected values that binary32 can scale, but the largest is {largest}")
    codes: NDArray[Any] = np.zeros((-(-x.shape[0] // page) * page, x.shape[1]), np.uint8)
    codes[: x.shape[0]] = encode_e4m3(x / scale)
    return codes.reshape(-1, page, 1, x.shape[1]), scale
