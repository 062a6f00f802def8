"""The tensor-core product of audit/simt/tensor_core.md in Python's integers, written from its five steps alone.

Bit patterns in, bit patterns out; no floating point anywhere. Slow: some 50 microseconds for 16 products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NAN = 0x7FFFFFFF
INFINITY = 0x7F800000
MINUS_INFINITY = 0xFF800000

# architecture: (F, L)
ARCHITECTURES = {"sm_70": (23, 4), "sm_80": (24, 8), "sm_90": (25, 16)}


class Term(NamedTuple):
    """(-1)**negative * significand * 2**(exponent - fraction_bits), or an infinity, or a NaN."""

    negative: bool
    significand: int
    exponent: int
    fraction_bits: int
    special: str = ""


def f16(bits: int) -> Term:
    """Step 1 for an operand of A or B."""
    return _decode(bits, exponent_bits=5, fraction_bits=10)


def f32(bits: int) -> Term:
    """Step 1 for c."""
    return _decode(bits, exponent_bits=8, fraction_bits=23)


def _decode(bits: int, exponent_bits: int, fraction_bits: int) -> Term:
    negative = bool(bits >> (exponent_bits + fraction_bits))
    field = (bits >> fraction_bits) % 2**exponent_bits
    fraction = bits % 2**fraction_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if field == 2**exponent_bits - 1:
        return Term(negative, 0, 0, fraction_bits, special="nan" if fraction else "inf")
    if field == 0:
        return Term(negative, fraction, 1 - bias, fraction_bits)
    return Term(negative, 2**fraction_bits + fraction, field - bias, fraction_bits)


def multiply(x: Term, y: Term) -> Term:
    """Step 2, and step 5's inf*0."""
    negative = x.negative != y.negative
    fraction_bits = x.fraction_bits + y.fraction_bits
    if "nan" in (x.special, y.special):
        return Term(negative, 0, 0, fraction_bits, special="nan")
    if "inf" in (x.special, y.special):
        zero_times_inf = any(not t.special and t.significand == 0 for t in (x, y))
        return Term(negative, 0, 0, fraction_bits, special="nan" if zero_times_inf else "inf")
    return Term(negative, x.significand * y.significand, x.exponent + y.exponent, fraction_bits)


def step(a: Sequence[int], b: Sequence[int], c: int, f: int) -> int:
    """One step over the products a[i]*b[i] and c: binary32 bits."""
    terms = [multiply(f16(x), f16(y)) for x, y in zip(a, b, strict=True)] + [f32(c)]

    specials = {(t.special, t.negative) for t in terms if t.special}
    if any(kind == "nan" for kind, _ in specials) or len(specials) == 2:
        return NAN
    if specials:
        return MINUS_INFINITY if specials == {("inf", True)} else INFINITY

    terms = [t for t in terms if t.significand != 0]
    if not terms:
        return 0
    e_max = max(t.exponent for t in terms)
    total = 0  # in units of 2**(e_max - f)
    for t in terms:
        # significand * 2**(exponent - fraction_bits - (e_max - f)) as a fraction; neither part is negative
        numerator = t.significand * 2**f
        denominator = 2 ** (t.fraction_bits + e_max - t.exponent)
        total += (-1) ** t.negative * (numerator // denominator)
    return round_toward_zero(total, e_max - f)


def round_toward_zero(total: int, unit: int) -> int:
    """total * 2**unit as binary32 bits, rounded toward zero; zero is +0."""
    magnitude = abs(total)
    exponent = max(magnitude.bit_length() - 1 + unit, -126)
    shift = unit - (exponent - 23)
    kept = magnitude << shift if shift >= 0 else magnitude >> -shift
    if kept == 0:
        return 0
    assert exponent <= 127, "sixteen f16 products cannot carry a finite c past the largest binary32"
    field = exponent + 127 if kept >= 2**23 else 0
    return (total < 0) << 31 | field << 23 | kept % 2**23


def chain(a: Sequence[int], b: Sequence[int], c: int, architecture: str) -> int:
    """One element of D: steps of L products in ascending k, one step's result being the next one's c."""
    f, length = ARCHITECTURES[architecture]
    for first in range(0, len(a), length):
        c = step(a[first : first + length], b[first : first + length], c, f)
    return c
