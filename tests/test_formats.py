"""The number formats against exact rational arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audit import formats

F32_PATTERNS = st.integers(0, 2**32 - 1)


def code_value(code: int) -> Fraction:
    """The value of a finite e4m3fn code from the format's definition (bias 7, three fraction bits)."""
    exponent, fraction = code >> 3 & 15, code & 7
    magnitude = Fraction(fraction, 512) if exponent == 0 else Fraction(8 + fraction, 8) * Fraction(2) ** (exponent - 7)
    return -magnitude if code & 0x80 else magnitude


FINITE_CODES = [c for c in range(256) if c & 0x7F != 0x7F]
POSITIVE = [code_value(c) for c in range(0x7F)]


def nearest_code(value: Fraction, negative: bool) -> int:
    """Exhaustive search: the nearest of all finite codes, the even one at a tie."""
    magnitude = abs(value)
    best = min(range(0x7F), key=lambda c: (abs(POSITIVE[c] - magnitude), c & 1))
    return best | (0x80 if negative else 0)


def f32(pattern: int) -> np.float32:
    return np.uint32(pattern).view(np.float32)


def f32_of(value: Fraction, zero_sign: float) -> int:
    """The bits of a rational rounded once to the nearest binary32, ties to even, in integers alone."""
    if value == 0:
        return 0x80000000 if zero_sign < 0 else 0
    sign, magnitude = (0x80000000 if value < 0 else 0), abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, -126)
    scaled = magnitude / Fraction(2) ** (exponent - 23)
    steps = round(scaled)
    pattern = ((exponent + 126) << 23) + steps
    return sign | min(pattern, 0x7F800000)


def fma_bits(a: np.float32, b: np.float32, c: np.float32) -> int:
    product, addend = Fraction(float(a)) * Fraction(float(b)), Fraction(float(c))
    product_sign = math.copysign(1, float(a)) * math.copysign(1, float(b))
    both_negative = product == 0 == addend and product_sign < 0 and math.copysign(1, float(c)) < 0
    exact = product + addend
    return f32_of(exact, -1.0 if both_negative else 1.0)


def assert_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    got = formats.fma32(a, b, c).view(np.uint32)
    for index, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        assert int(got[index]) == fma_bits(x, y, z), (x.hex(), y.hex(), z.hex())


# --- e4m3 ------------------------------------------------------------------------------------------------


def test_every_code_decodes_to_its_definition() -> None:
    for code in FINITE_CODES:
        for value in (formats.E4M3_F32[code], formats.E4M3_F16[code]):
            assert Fraction(float(value)) == code_value(code)
            assert np.signbit(value) == bool(code & 0x80)


def test_nan_codes_keep_their_sign() -> None:
    assert [hex(b) for b in formats.E4M3_F16[[0x7F, 0xFF]].view(np.uint16)] == ["0x7e00", "0xfe00"]
    assert [hex(b) for b in formats.E4M3_F32[[0x7F, 0xFF]].view(np.uint32)] == ["0x7fc00000", "0xffc00000"]


def test_every_finite_code_survives_a_round_trip() -> None:
    codes = np.array(FINITE_CODES, np.uint8)
    assert np.array_equal(formats.encode_e4m3(formats.decode_e4m3(codes)), codes)
    assert np.array_equal(formats.encode_e4m3(formats.decode_e4m3_f16(codes)), codes)


def test_tables_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        formats.E4M3_F32[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        formats.E4M3_F16[0] = 1.0


def test_encode_at_and_around_every_tie() -> None:
    middles = [float((a + b) / 2) for a, b in itertools.pairwise(POSITIVE)]
    exact = [float(v) for v in POSITIVE]
    near = np.array(middles + exact, np.float32)
    values = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1e9))])
    values = np.concatenate([values, -values])
    got = formats.encode_e4m3(values)
    want = [nearest_code(Fraction(float(v)), bool(np.signbit(v))) for v in values]
    assert got.tolist() == want


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_encode_random_values_of_every_dtype(dtype: type) -> None:
    rng = np.random.default_rng(3)
    values: np.ndarray = (rng.normal(size=2000) * 2.0 ** rng.integers(-12, 10, 2000)).astype(dtype)
    want = [nearest_code(Fraction(float(v)), bool(np.signbit(v))) for v in values]
    assert formats.encode_e4m3(values).tolist() == want


def test_encode_rounds_f64_once() -> None:
    # One step of f64 above a tie: through f32 it would become the tie and go down to even.
    assert formats.encode_e4m3(np.float64(1.0625 + 2.0**-40)) == 0x39
    assert formats.encode_e4m3(np.float64(1.0625)) == 0x38


def test_encode_saturates_and_canonises_nan() -> None:
    values = np.array([448, 463, 464, 465, 1e30, np.inf, -449, -np.inf, np.nan, -np.nan, 0.0, -0.0, -1e-9], np.float32)
    want = [0x7E] * 6 + [0xFE] * 2 + [0x7F] * 2 + [0, 0x80, 0x80]
    assert formats.encode_e4m3(values).tolist() == want


def test_codec_refuses_other_dtypes() -> None:
    with pytest.raises(TypeError, match="u8"):
        formats.decode_e4m3(np.zeros(3, np.int8))
    with pytest.raises(TypeError, match="int64"):
        formats.encode_e4m3(np.zeros(3, np.int64))


# --- bits and distances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_hex_bits_round_trip(dtype: type) -> None:
    for value in (0.0, -0.0, 1.5, -np.inf, np.nan, 6e-8):
        scalar = dtype(value)
        back = formats.from_hex_bits(formats.hex_bits(scalar))
        assert type(back) is dtype
        assert back.tobytes() == scalar.tobytes()


def test_hex_bits_are_the_known_patterns() -> None:
    assert formats.hex_bits(np.float16(1)) == "0x3c00"
    assert formats.hex_bits(np.float32(-1e30)) == "0xf149f2ca"
    assert formats.hex_bits(1.0) == "0x3ff0000000000000"


@pytest.mark.parametrize("text", ["0x", "3c00", "0x3c0", "0x3g00", "0x3c00\n", "0x_3c0", "-0x3c00"])
def test_hex_bits_refuse_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected 0x"):
        formats.from_hex_bits(text)


def test_bits_and_back() -> None:
    values = np.array([[1.0, -np.nan], [np.inf, -0.0]], np.float32)
    assert formats.from_bits(formats.bits(values)).tobytes() == values.tobytes()
    with pytest.raises(TypeError, match="int32"):
        formats.from_bits(np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="one float"):
        formats.hex_bits(np.zeros(2))  # type: ignore[arg-type]


def test_ulp_distance_counts_every_f16() -> None:
    finite = np.arange(0x7C01, dtype=np.uint16)  # +0 to +inf
    line = np.concatenate([(finite[:0:-1] | 0x8000), finite]).view(np.float16)
    assert np.array_equal(formats.ulp_distance(line[1:], line[:-1]), np.ones(len(line) - 1, np.int64))
    assert formats.ulp_distance(line[0], line[-1]) == len(line) - 1


def test_ulp_distance_of_zeros_nan_and_extremes() -> None:
    zero, nan = np.float32(0), np.float32(np.nan)
    assert formats.ulp_distance(zero, np.float32(-0.0)) == 0
    assert formats.ulp_distance(nan, nan) == formats.NAN_DISTANCE
    assert formats.ulp_distance(zero, nan) == formats.NAN_DISTANCE
    assert formats.ulp_distance(np.float32(-np.inf), np.float32(np.inf)) == 2 * 0x7F800000
    assert formats.ulp_distance(np.float32(-1e-45), np.float32(1e-45)) == 2
    with pytest.raises(TypeError, match="float16 and float32"):
        formats.ulp_distance(np.float16(1), np.float32(1))


# --- fma -------------------------------------------------------------------------------------------------


@settings(max_examples=1500, deadline=None)
@given(F32_PATTERNS, F32_PATTERNS, F32_PATTERNS)
@example(0x00000001, 0x3F000000, 0x00000001)  # half a subnormal step: a tie between subnormals
@example(0x80000001, 0x3F000000, 0x80000001)
@example(0x7F7FFFFF, 0x3F800001, 0x80000001)  # just short of a rounding to infinity
@example(0x3F800001, 0x3F800001, 0xBF800002)  # all of the result is the product's low half
def test_fma_is_the_rounded_exact_value(a: int, b: int, c: int) -> None:
    x, y, z = f32(a), f32(b), f32(c)
    got = formats.fma32(x, y, z)
    if np.isfinite([x, y, z]).all():
        assert int(got.view(np.uint32)) == fma_bits(x, y, z)
    else:
        with np.errstate(all="ignore"):
            want = np.float64(x) * np.float64(y) + np.float64(z)
        assert np.isnan(got) if np.isnan(want) else got == want


def test_fma_where_rounding_through_f64_fails() -> None:
    """The product lies at a tie of binary32; c is too small for f64 to see, and decides."""
    rng = np.random.default_rng(5)
    n = 3000
    # (2^12 + i) * (2^13 + j) with 25 significant bits and an odd last one is a tie.
    a = (rng.integers(2**11, 2**12, 40 * n) * 2 + 1).astype(np.float32)
    b = (rng.integers(2**11, 2**12, 40 * n) * 2 + 1).astype(np.float32)
    product = a.astype(np.float64) * b
    tie = (product >= 2**24) & (product < 2**25)
    a, b = a[tie][:n], b[tie][:n]
    assert len(a) == n
    c = (rng.choice([-1.0, 1.0], n) * 2.0 ** rng.integers(-120, -31, n)).astype(np.float32)
    with np.errstate(all="ignore"):
        twice = (a.astype(np.float64) * b + c).astype(np.float32)
    want = formats.fma32(a, b, c)
    assert (twice != want).mean() > 0.3  # the cases do trap a double rounding
    assert_fma(a, b, c)


def test_fma_at_subnormal_ties() -> None:
    rng = np.random.default_rng(6)
    n = 2000
    a = np.ldexp(rng.integers(1, 2**12, n) * 2.0 + 1, -75).astype(np.float32)
    b = np.ldexp(rng.integers(1, 2**11, n) * 2.0 + 1, -75).astype(np.float32)
    c = np.ldexp(rng.integers(-(2**10), 2**10, n).astype(np.float64), -149).astype(np.float32)
    assert_fma(a, b, c)


def test_fma_with_cancellation_and_wide_exponents() -> None:
    rng = np.random.default_rng(7)
    n = 2000
    a = (rng.normal(size=n) * 2.0 ** rng.integers(-40, 40, n)).astype(np.float32)
    b = (rng.normal(size=n) * 2.0 ** rng.integers(-40, 40, n)).astype(np.float32)
    near = (-(a.astype(np.float64) * b)).astype(np.float32)
    steps = rng.integers(-2, 3, n).astype(np.int32)
    c = np.where(near == 0, near, (near.view(np.int32) + steps).view(np.float32))
    assert_fma(a, b, c)
    assert_fma(a, b, (rng.normal(size=n) * 2.0 ** rng.integers(-100, 100, n)).astype(np.float32))


def test_fma_special_values_and_zero_signs() -> None:
    specials = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, 1e-45], np.float32)
    a, b, c = (x.ravel() for x in np.meshgrid(specials, specials, specials))
    got = formats.fma32(a, b, c)
    with np.errstate(all="ignore"):
        want = (a.astype(np.float64) * b + c).astype(np.float32)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    assert np.array_equal(got[~finite], want[~finite], equal_nan=True)
    assert_fma(a[finite], b[finite], c[finite])


def test_fma_broadcasts_and_refuses_other_dtypes() -> None:
    one = np.float32(1)
    assert formats.fma32(np.ones((3, 1), np.float32), np.ones(4, np.float32), one).tolist() == [[2.0] * 4] * 3
    with pytest.raises(TypeError, match="float64"):
        formats.fma32(np.ones(2), one, one)
