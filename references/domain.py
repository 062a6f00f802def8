"""The domain that kernels/CONTRACT.md admits. Inputs outside it are refused, never audited."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from audit import InputError

from .paging import gather_codes, gather_tokens
from .splits import total_of

TABLE_TOKENS = 266_240
CAPACITY_TOKENS = 262_152
"""Of the grouped operator: 262,144 and 8 of head-room. The scalar one takes 262,144."""
SCORE_LIMIT = 1e20
SMALLEST_SCORE_SCALE = 2.0**-60

_BLOCK = 4096
_LARGEST_KEY = 448.0


def check_domain(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    capacity: int = CAPACITY_TOKENS,
) -> None:
    """Raises InputError, naming the first offending element, unless the operators promise a result.

    q f16[rows, G, D]; k, v u8[pages, page, 1, D]; table i32[1, n]; lengths i32[rows]. Checked in this order:
    shapes, scales (finite, positive, scale*k_scale >= 2^-60), lengths (<= n*page, which is <= 266,240, and
    <= capacity; negative ones are 0), the table entries of visible tokens, q of rows of length > 0 (finite),
    visible K and V (no NaN), every visible |score| < 1e20. Only data that some row sees is read.
    """
    _check_shapes(q, k, v, table, lengths)
    _check_scales(scale, k_scale, v_scale)
    _check_lengths(lengths, table.shape[1] * k.shape[1], capacity)
    for row in np.flatnonzero(lengths > 0):
        _refuse_first(~np.isfinite(q[row]), q[row], f"q[{row}, ", "a finite number in a row of length > 0")
    total = total_of(lengths)
    for name, storage in (("k", k), ("v", v)):
        for start, stop in _blocks(total):
            codes = gather_codes(storage, table, stop, start=start)
            nan = codes & 0x7F == 0x7F
            if nan.any():
                token, dim = (int(i) for i in np.argwhere(nan)[0])
                raise InputError(
                    f"{name}, token {start + token}, dim {dim}: expected a number where rows see it, got NaN"
                    f" 0x{codes[token, dim]:02X}; fix the capture, or shorten lengths to {start + token}"
                )
    _check_scores(q, k, table, lengths, float(scale) * float(k_scale))


def _check_shapes(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
) -> None:
    for name, array, dtype, dims in (
        ("q", q, np.float16, 3),
        ("k", k, np.uint8, 4),
        ("v", v, np.uint8, 4),
        ("table", table, np.int32, 2),
        ("lengths", lengths, np.int32, 1),
    ):
        if array.dtype != dtype or array.ndim != dims:
            expected = f"{np.dtype(dtype)} of {dims} dimensions"
            raise InputError(f"{name}: expected {expected}, got {array.dtype} of shape {array.shape}")
    if k.shape != v.shape or k.shape[2:] != (1, q.shape[2]) or len(table) != 1 or len(lengths) != len(q):
        raise InputError(
            "expected q [rows, G, D], k and v [pages, page, 1, D], table [1, n], lengths [rows], got"
            f" {q.shape}, {k.shape}, {v.shape}, {table.shape}, {lengths.shape}"
        )


def _check_scales(scale: np.float32, k_scale: np.float32, v_scale: np.float32) -> None:
    for name, value in (("scale", scale), ("k_scale", k_scale), ("v_scale", v_scale)):
        if not (0 < float(value) < math.inf):
            raise InputError(f"{name}: expected a finite number above 0, got {float(value)}")
    product = float(scale) * float(k_scale)
    if not (SMALLEST_SCORE_SCALE <= product <= float(np.finfo(np.float32).max)):
        raise InputError(f"scale*k_scale: expected at least 2^-60 and a finite binary32, got {product}")


def _check_lengths(lengths: NDArray[np.int32], addressable: int, capacity: int) -> None:
    if addressable > TABLE_TOKENS:
        raise InputError(f"table: expected n*page <= {TABLE_TOKENS}, got {addressable}; shorten the table")
    limit = min(addressable, capacity)
    beyond = np.flatnonzero(lengths > limit)
    if beyond.size:
        row = int(beyond[0])
        raise InputError(
            f"lengths[{row}]: expected at most {limit} (n*page is {addressable}, the capacity {capacity}),"
            f" got {lengths[row]}; add table entries or shorten the row"
        )


def _refuse_first(wrong: NDArray[np.bool_], values: NDArray[np.float16], where: str, expected: str) -> None:
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        element = where + ", ".join(map(str, index)) + "]"
        raise InputError(
            f"{element}: expected {expected}, got {values[index]}; fix the input or set the length of its row to 0"
        )


def _blocks(total: int) -> Iterator[tuple[int, int]]:
    for start in range(0, total, _BLOCK):
        yield start, min(start + _BLOCK, total)


def _check_scores(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    table: NDArray[np.int32],
    lengths: NDArray[np.int32],
    factor: float,
) -> None:
    rows, heads, dims = q.shape
    queries = np.where(lengths[:, None, None] > 0, q, np.float16(0)).astype(np.float64).reshape(rows * heads, dims)
    if factor * float(np.abs(queries).sum(axis=1).max(initial=0)) * _LARGEST_KEY < SCORE_LIMIT:
        return  # no key can reach the limit
    seen = np.repeat(lengths, heads)[:, None]
    for start, stop in _blocks(total_of(lengths)):
        scores = factor * (queries @ gather_tokens(k, table, stop, start=start).T)
        over = ~(np.abs(scores) < SCORE_LIMIT) & (np.arange(start, stop) < seen)
        if over.any():
            line, token = (int(i) for i in np.argwhere(over)[0])
            raise InputError(
                f"score of row {line // heads}, head {line % heads}, token {start + token}: expected a"
                f" magnitude below 1e20, got {scores[line, token]:.6g}; scale q, scale or k_scale down"
            )
