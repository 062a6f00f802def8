"""The contract's own binary32 functions on numpy arrays: exp, max and the trees.

numpy rounds every f32 operation once to nearest even and keeps subnormals. f32 operands must never meet a wider
array, or the operation would run in f64.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from audit.formats import fma32

Array32 = NDArray[np.float32]

EXP_FLOOR = np.float32(-80)
"""Arguments are raised to this, so that exp is never subnormal."""

_LOG2_E = np.float32(float.fromhex("0x1.715476p+0"))
_LN2_HIGH = np.float32(float.fromhex("-0x1.62e430p-1"))
_LN2_LOW = np.float32(float.fromhex("0x1.05c610p-29"))
_SHIFT = np.float32(12582912)  # 1.5 * 2^23: adding it leaves round(x * log2 e) in the low bits of z
_LEADING = np.float32(float.fromhex("0x1.6b6bf8p-10"))
_COEFFICIENTS = [
    np.float32(float.fromhex(text))
    for text in ("0x1.122f28p-7", "0x1.55568ap-5", "0x1.5554a4p-3", "0x1p-1", "0x1p+0", "0x1p+0")
]


def exp32(x: Array32) -> Array32:
    """e^x as the contract computes it, f32[...] for x in [-80, 0]: at most 0.90351 ulp off, exactly 1 at 0.

    Outside that range, and for NaN, the result is whatever the integer addition gives, as in the kernels.
    """
    with np.errstate(all="ignore"):
        z = fma32(x, _LOG2_E, _SHIFT)
        n = z - _SHIFT
        r = fma32(n, _LN2_LOW, fma32(n, _LN2_HIGH, x))
        q = np.broadcast_to(_LEADING, r.shape)
        for coefficient in _COEFFICIENTS:
            q = fma32(q, r, coefficient)
        return np.asarray((q.view(np.uint32) + (z.view(np.uint32) << np.uint32(23))).view(np.float32))


def exp32_floored(x: Array32) -> Array32:
    """exp(max(x, -80))."""
    return exp32(max32(x, EXP_FLOOR))


def max32(a: Array32 | np.float32, b: Array32 | np.float32) -> Array32:
    """a > b ? a : b, which gives b for equal zeros and where either is NaN."""
    return np.where(a > b, a, b)


def add32(a: Array32, b: Array32) -> Array32:
    """a + b."""
    return a + b


def tree(combine: Callable[[Array32, Array32], Array32], x: Array32) -> Array32:
    """The reduction of the last axis, 2^n values: x[i] = combine(x[i], x[i+o]) for i < o, o halving to 1."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = combine(x[..., :half], x[..., half:])
    return x[..., 0]
