"""One row and head in exact integers and 50 digits: the oracle of `fp64`, for small contexts.

q is a multiple of 2^-24 and e4m3 one of 2^-9, so q.k is an integer times 2^-33, whatever the exponents.
"""

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from .project_references import paging

DIGITS = 50


@dataclass(frozen=True)
class ExactHead:
    """mpmath numbers of `DIGITS` digits; a row that sees no token of the range has zeros and -inf."""

    out: tuple[Any, ...]
    """o at the chosen dimensions."""
    lse: Any
    """ln sum exp(score_j), natural."""


def exact_head(
    q: NDArray[np.float16],
    k: NDArray[np.uint8],
    v: NDArray[np.uint8],
    table: NDArray[np.int32],
    length: int,
    *,
    scale: np.float32,
    k_scale: np.float32,
    v_scale: np.float32,
    dims: range,
    tokens: range | None = None,
) -> ExactHead:
    """Attention of one query q f16[D] over the visible part of `tokens` (all, or those of one split).

    k, v u8[pages, page, 1, D]; table i32[1, n]; the row sees tokens 0..length-1. About 0.1 ms a token.
    """
    tokens = range(max(length, 0)) if tokens is None else range(tokens.start, min(tokens.stop, length))
    with mpmath.workdps(DIGITS):
        if not tokens:
            return ExactHead((mpmath.mpf(0),) * len(dims), mpmath.mpf("-inf"))
        query = _integers(q, 24)
        keys = _integers(paging.gather_tokens(k, table, tokens.stop, start=tokens.start), 9)
        values = _integers(paging.gather_tokens(v, table, tokens.stop, start=tokens.start), 9)
        factor = mpmath.mpf(float(scale)) * mpmath.mpf(float(k_scale))
        scores = [factor * mpmath.ldexp(int(dot), -33) for dot in keys @ query]
        peak = max(scores)
        weights = [mpmath.exp(score - peak) for score in scores]
        total = mpmath.fsum(weights)
        gain = mpmath.mpf(float(v_scale)) / total
        out = tuple(
            gain * mpmath.fsum(w * mpmath.ldexp(int(x), -9) for w, x in zip(weights, values[:, d], strict=True))
            for d in dims
        )
        return ExactHead(out, peak + mpmath.log(total))


def _integers(x: NDArray[np.floating], fraction_bits: int) -> NDArray[np.object_]:
    """x * 2^fraction_bits as Python integers, which do not overflow."""
    return np.ldexp(x.astype(np.float64), fraction_bits).astype(np.int64).astype(object)
