"""Floating-point numbers as exact fractions, and their rounding to a format: written from IEEE 754 alone."""

from __future__ import annotations

from fractions import Fraction
from math import isnan, isqrt
from typing import NamedTuple


class Format(NamedTuple):
    """A binary format: bits of the mantissa and of the exponent."""

    mantissa: int
    exponent: int

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        return (2**self.exponent - 1) << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.mantissa + self.exponent)

    @property
    def nan(self) -> int:
        """The canonical one of the PTX ISA: all bits but the sign."""
        return self.sign - 1


F16, BF16, F32, F64 = Format(10, 5), Format(7, 8), Format(23, 8), Format(52, 11)


def value(bits: int, form: Format) -> Fraction | float:
    """A number by its bits: a fraction, or a float where it is infinite or no number."""
    sign, magnitude = (-1 if bits & form.sign else 1), bits & (form.sign - 1)
    if magnitude >= form.infinity:
        return sign * float("inf") if magnitude == form.infinity else float("nan")
    exponent, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    whole = fraction + ((1 << form.mantissa) if exponent else 0)
    return sign * whole * Fraction(2) ** (max(exponent, 1) - form.bias - form.mantissa)


def is_nan(number: Fraction | float) -> bool:
    """Whether it is no number."""
    return isinstance(number, float) and isnan(number)


def rounded(number: Fraction, form: Format, mode: str = "rn", zero_sign: bool = False) -> int:
    """The bits of a number; `zero_sign` is that of an exact zero."""
    if number == 0:
        return form.sign if zero_sign else 0
    negative, size = number < 0, abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= 1 if Fraction(2) ** exponent > size else 0
    exponent = max(exponent, 1 - form.bias)
    steps = size / Fraction(2) ** (exponent - form.mantissa)
    below = steps.numerator // steps.denominator
    rest = steps - below
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    code = ((exponent + form.bias - 1) << form.mantissa) + below + up
    if code >= form.infinity:
        stays = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        code = form.infinity - 1 if stays else form.infinity
    return code | (form.sign if negative else 0)


def root(number: Fraction, form: Format, mode: str = "rn") -> int:
    """The rounded square root of a positive number: enough of its digits, and whether more follow."""
    scale = 2 ** (2 * form.mantissa + 200)
    floor = isqrt(number.numerator * scale * scale // number.denominator)
    is_exact = floor * floor * number.denominator == number.numerator * scale * scale
    return rounded(Fraction(2 * floor + (0 if is_exact else 1), 2 * scale), form, mode)
