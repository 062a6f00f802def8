"""The tensor-core product of audit/simt/tensor_core.md in numpy: D = A B + C, f16 in, f32 out, bit for bit.

Terms are held in f64 rather than as integers, which truncates toward zero in one instruction and is exact:
a product of two f16 has 22 bits, multiplying by a power of two changes none (no exponent below leaves
-300..300), truncated terms are integers below 2^28, and their sums stay below 2^53.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NAN_PATTERN = np.uint32(0x7FFFFFFF)

# The exponent of a zero operand: below every sum of two others, so that zero terms take no part in e_max.
_ZERO = -4096


@dataclass(frozen=True)
class TensorCore:
    """How an architecture sums: `length` products a step, as multiples of 2^(e_max - fraction_bits)."""

    fraction_bits: int
    length: int


MODELS = {
    "sm_70": TensorCore(23, 4),
    "sm_75": TensorCore(24, 8),
    "sm_80": TensorCore(24, 8),
    "sm_86": TensorCore(24, 8),
    "sm_89": TensorCore(24, 8),
    "sm_90": TensorCore(25, 16),
}
SM_90 = MODELS["sm_90"]


def product(
    a: NDArray[np.float16], b: NDArray[np.float16], c: NDArray[np.float32], model: TensorCore = SM_90
) -> NDArray[np.float32]:
    """A B + C, f32[M, N], of A f16[M, K], B f16[K, N] and C f32[M, N] (or what broadcasts to it).

    The model's length of products makes a step; steps run in ascending k, each taking the result before it
    as its C. NaN, inf*0 and inf - inf give 0x7FFFFFFF.
    """
    result: NDArray[np.float32] = np.broadcast_to(c, (len(a), b.shape[1]))
    finite = all(bool(np.isfinite(x).all()) for x in (a, b, c))
    for k in range(0, a.shape[1], model.length):
        left, right = a[:, k : k + model.length], b[k : k + model.length]
        if finite:
            result = _step(left, right, result, model.fraction_bits)
        else:
            result = _step_with_specials(left, right, result, model.fraction_bits)
    return result


def _step(
    a: NDArray[np.float16], b: NDArray[np.float16], c: NDArray[np.float32], fraction_bits: int
) -> NDArray[np.float32]:
    a_exponent, b_exponent = _exponent(a, -14), _exponent(b, -14)
    e_max = np.maximum(_exponent(c, -126), -126)  # where all terms are zero, any exponent will do
    for k in range(a.shape[1]):
        np.maximum(e_max, a_exponent[:, k, None] + b_exponent[k], out=e_max)
    per_unit = np.ldexp(1.0, fraction_bits - e_max)
    a_value, b_value = a.astype(np.float64), b.astype(np.float64)
    total = np.trunc(c * per_unit)
    term = np.empty_like(total)
    for k in range(a.shape[1]):
        np.multiply(a_value[:, k, None], b_value[k], out=term)
        np.multiply(term, per_unit, out=term)
        total += np.trunc(term, out=term)
    return _round_toward_zero(total / per_unit)


def _exponent(x: NDArray[np.floating], lowest: int) -> NDArray[np.int32]:
    """e of a significand in [1, 2), that of subnormals pinned at the lowest; far below for zero."""
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest)
    return np.where(x == 0, np.int32(_ZERO), exponent)


def _round_toward_zero(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """f64 to f32 toward zero, subnormals included; past the largest number that number; zero is +0."""
    with np.errstate(over="ignore", under="ignore"):
        near = x.astype(np.float32)
    past = np.abs(near) > np.abs(x)
    near = (near.view(np.int32) - past).view(np.float32)
    return near + np.float32(0)  # -0 + 0 is +0


def _step_with_specials(
    a: NDArray[np.float16], b: NDArray[np.float16], c: NDArray[np.float32], fraction_bits: int
) -> NDArray[np.float32]:
    """As `_step`; where a term is not finite, what IEEE arithmetic gives, every NaN being 0x7FFFFFFF."""
    with np.errstate(invalid="ignore"):
        terms = a.astype(np.float64)[:, :, None] * b.astype(np.float64)
        ieee = terms.sum(axis=1) + c
    special = ~(np.isfinite(terms).all(axis=1) & np.isfinite(c))
    a, b, c = (np.where(np.isfinite(x), x, np.zeros_like(x)) for x in (a, b, c))
    summed = np.where(special, ieee.astype(np.float32), _step(a, b, c, fraction_bits))
    return np.where(np.isnan(summed), NAN_PATTERN, summed.view(np.uint32)).view(np.float32)
