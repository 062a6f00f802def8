"""Steps of the contracts, each wrong in one way, for `mutations` and `scalar_mutations`."""

import numpy as np
from numpy.typing import NDArray

from .binary32 import EXP_FLOOR, Array32, max32
from .contract import weighted_values
from .tensor_core import TensorCore, product

_K16 = 16


def uncompensated_products(queries: NDArray[np.float16], keys: NDArray[np.float16], model: TensorCore) -> Array32:
    """`contract.kahan_products` with a plain sum over the K16 products."""
    total = np.zeros((len(queries), len(keys)), np.float32)
    for start in range(0, queries.shape[1], _K16):
        chunk = slice(start, start + _K16)
        total = total + product(queries[:, chunk], keys[:, chunk].T, np.zeros((1, 1), np.float32), model)
    return total


def one_term_exp(x: Array32) -> Array32:
    """exp(max(x, -80)) as 2^(x*log2 e), the product rounded once to f32: up to 62 ulp off."""
    product32 = max32(x, EXP_FLOOR) * np.float32(np.log2(np.e))
    return np.exp2(product32.astype(np.float64)).astype(np.float32)


def f16_weights(p: Array32) -> Array32:
    """p in [0, 1] without its residual: rounded to nearest even in f16, ten times as fast as numpy converts."""
    below = (p + np.float32(0.5)) - np.float32(0.5)  # from 0.5 to 1 f32 has f16's step below 2^-14, 2^-24
    return np.where(p < np.float32(2.0**-14), below, _shortened(p, 13))


def bf16_weights(p: Array32) -> Array32:
    """p rounded to nearest even in bfloat16."""
    return _shortened(p, 16)


def _shortened(p: Array32, bits: int) -> Array32:
    """f32 rounded to nearest even without its last `bits` bits, for any exponent."""
    word = p.view(np.uint32)
    half_step = np.uint32((1 << bits - 1) - 1) + (word >> np.uint32(bits) & np.uint32(1))
    return (word + half_step & np.uint32(-(1 << bits) & 0xFFFFFFFF)).view(np.float32)


def f16_weighted_values(p: Array32, values: NDArray[np.float16], model: TensorCore) -> Array32:
    """`contract.weighted_values` without the residual R, which is exactly 0 here."""
    return weighted_values(f16_weights(p), values, model)


def bf16_weighted_values(p: Array32, values: NDArray[np.float16], model: TensorCore) -> Array32:
    """`contract.weighted_values` of p in bfloat16, which P and R hold exactly down to f16's reach."""
    return weighted_values(bf16_weights(p), values, model)
