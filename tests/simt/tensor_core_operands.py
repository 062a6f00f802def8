"""Operands that reach every rule of the tensor-core product, as bit patterns; one family for each trouble."""

from __future__ import annotations

import numpy as np

Bits16 = np.ndarray[tuple[int, ...], np.dtype[np.uint16]]
Bits32 = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]

FAMILIES = [
    "normal",
    "zero_c",
    "wide",
    "cancelling",
    "same_exponent",
    "subnormal",
    "subnormal_c",
    "large_c",
    "zeros",
    "special",
    "any_bits",
]


def halves(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Bits16:
    return values.astype(np.float16).view(np.uint16)


def floats(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Bits32:
    return values.astype(np.float32).view(np.uint32)


def f16_with_fields(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Bits16:
    """Any sign and fraction; the exponent field in [low, high)."""
    field = rng.integers(low, high, shape, dtype=np.uint16)
    return (rng.integers(0, 2**16, shape, dtype=np.uint16) & 0x83FF) | (field << 10)


def f32_with_fields(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> Bits32:
    field = rng.integers(low, high, shape, dtype=np.uint32)
    return (rng.integers(0, 2**32, shape, dtype=np.uint32) & 0x807FFFFF) | (field << 23)


def sprinkle(rng: np.random.Generator, bits: np.ndarray, rate: float, values: list[int]) -> None:
    chosen = rng.random(bits.shape) < rate
    bits[chosen] = rng.choice(np.array(values, bits.dtype), int(chosen.sum()))


def operands(family: str, seed: int, count: int, k: int) -> tuple[Bits16, Bits16, Bits32]:
    """a[count,16,k], b[count,k,16] and c[count,16,16] of a family, the same for the same arguments."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), k])
    shape_a, shape_b, shape_c = (count, 16, k), (count, k, 16), (count, 16, 16)
    a, b = halves(rng.normal(size=shape_a)), halves(rng.normal(size=shape_b))
    c = floats(rng.normal(size=shape_c))
    match family:
        case "normal":
            pass
        case "zero_c":
            c[:] = rng.choice(np.array([0, 0x80000000], np.uint32), shape_c)
        case "wide":
            a, b = f16_with_fields(rng, shape_a, 0, 31), f16_with_fields(rng, shape_b, 0, 31)
            c = f32_with_fields(rng, shape_c, 127 - 60, 127 + 60)
        case "cancelling":
            # Each product returns with the other sign elsewhere; c is near minus the sum of the rest.
            a, b = f16_with_fields(rng, shape_a, 10, 20), f16_with_fields(rng, shape_b, 10, 20)
            order = rng.permutation(k)
            left, right = order[: k // 2], order[k // 2 :]
            a[:, :, right], b[:, right, :] = a[:, :, left] ^ 0x8000, b[:, left, :]
            a[:, :, right[0]] = f16_with_fields(rng, (count, 16), 1, 24)
            with np.errstate(over="ignore", invalid="ignore"):
                exact = a.view(np.float16).astype(np.float64) @ b.view(np.float16).astype(np.float64)
            c = floats(-exact * (1 + rng.choice([0, 2.0**-22, 2.0**-11], shape_c)))
        case "same_exponent":
            # Sums at the top of int32: every significand is near 2 and most signs agree.
            a = rng.integers(0x7BF8, 0x7C00, shape_a, dtype=np.uint16)
            b = rng.integers(0x7BF8, 0x7C00, shape_b, dtype=np.uint16)
            a[: count // 2] ^= 0x8000
            c = f32_with_fields(rng, shape_c, 127 + 28, 127 + 36) | 0x007FFFF0
        case "subnormal":
            a, b = f16_with_fields(rng, shape_a, 0, 2), f16_with_fields(rng, shape_b, 0, 2)
            sprinkle(rng, a, 0.3, [0x0000, 0x8000, 0x0001, 0x8001])
            c = f32_with_fields(rng, shape_c, 127 - 60, 127 - 20)
        case "subnormal_c":
            a[rng.random(shape_a[:2]) < 0.7] = 0
            sprinkle(rng, b, 0.3, [0x8000])
            c = f32_with_fields(rng, shape_c, 0, 3)
        case "large_c":
            c = f32_with_fields(rng, shape_c, 127 + 10, 255)
        case "zeros":
            sprinkle(rng, a, 0.7, [0x0000, 0x8000])
            sprinkle(rng, b, 0.7, [0x0000, 0x8000])
            sprinkle(rng, c, 0.5, [0x00000000, 0x80000000])
        case "special":
            # Rare enough that in most chains one special value decides.
            sprinkle(rng, a, 0.5 / k, [0x7C00, 0xFC00, 0x7C01, 0xFFFF])
            sprinkle(rng, b, 0.5 / k, [0x7C00, 0x7C00, 0xFC00, 0x7E00])
            sprinkle(rng, a, 0.1, [0x0000, 0x8000])
            sprinkle(rng, c, 0.2, [0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F7FFFFF])
        case "any_bits":
            a = rng.integers(0, 2**16, shape_a, dtype=np.uint16)
            b = rng.integers(0, 2**16, shape_b, dtype=np.uint16)
            c = rng.integers(0, 2**32, shape_c, dtype=np.uint32)
    return a, b, c
