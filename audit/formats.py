"""Number formats: bf16, e4m3fn, e5m2, e2m1fn, ulp distances, bit patterns as text, a correctly rounded binary32 fma.

`ml_dtypes` has the types; its casts round f64 twice and make NaN of what lies beyond e4m3, so this module has casts of
its own. Wherever it takes the codes of a format, unsigned integers, it takes arrays of the dtype of `ml_dtypes` too.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.spec import DTYPES

Float: TypeAlias = np.float16 | np.float32 | np.float64

E4M3_MAX = 448.0
E4M3_NAN = 0x7F
NAN_DISTANCE = np.iinfo(np.int64).max
"""The result of `ulp_distance` where either side is NaN: more than any bound, so that NaN never equals NaN."""

_UNSIGNED: dict[Any, Any] = {
    np.dtype(np.float16): np.uint16,
    np.dtype(np.float32): np.uint32,
    np.dtype(np.float64): np.uint64,
}
_FLOAT: dict[Any, Any] = {np.dtype(u): f.type for f, u in _UNSIGNED.items()}
_FLOAT_OF_DIGITS: dict[int, Any] = {4: np.float16, 8: np.float32, 16: np.float64}


class _Narrow(NamedTuple):
    """A format of at most 16 bits that numpy does not have."""

    significand: int  # bits, the leading one included
    least_exponent: int  # of a normal number in [1, 2)
    greatest: float
    infinity: bool
    nan: int  # the code that stands for every NaN


_NARROW: Mapping[str, _Narrow] = {
    "bf16": _Narrow(8, -126, 2.0**128 - 2.0**120, True, 0x7FFF),
    "e4m3": _Narrow(4, -6, E4M3_MAX, False, E4M3_NAN),
    "e5m2": _Narrow(3, -14, 57344.0, True, 0x7F),
    "e2m1": _Narrow(2, 0, 6.0, False, 0x7),
}
"""bf16: the upper half of binary32. e4m3 and e5m2: OCP 8-bit Floating Point Specification (OFP8) 1.0. e2m1: OCP
Microscaling Formats (MX) 1.0; it has no NaN, which PTX's `cvt` turns into the greatest number."""
FLOATS: Mapping[Any, str] = {DTYPES[name]: name for name in ("f64", "f32", "f16", *_NARROW)}
"""numpy dtype -> name, of every floating-point format."""


def _e4m3_values() -> NDArray[np.float32]:
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = np.where(
        exponent == 0, np.ldexp(mantissa / 8.0, -6), np.ldexp(1 + mantissa / 8.0, np.maximum(exponent, 1) - 7)
    )
    magnitude[code & 0x7F == E4M3_NAN] = np.nan
    values = np.copysign(magnitude, np.where(code & 0x80, -1.0, 1.0)).astype(np.float32)
    values.flags.writeable = False
    return values


E4M3_F32: NDArray[np.float32] = _e4m3_values()
"""f32[256]: the value of each code; 0x7F and 0xFF are quiet NaN with the code's sign."""
E4M3_F16: NDArray[np.float16] = E4M3_F32.astype(np.float16)
"""f16[256]: the same values, exact; `E4M3_F16.view(np.uint16)` are the bits that a decoder must give."""
E4M3_F16.flags.writeable = False


def decode_e4m3(codes: NDArray[Any]) -> NDArray[np.float32]:
    """The f32 values of e4m3fn numbers or their codes u8[...], exact. There is no infinity; 0x7F and 0xFF are NaN."""
    return np.asarray(E4M3_F32[_codes("e4m3", codes)])


def decode_e4m3_f16(codes: NDArray[Any]) -> NDArray[np.float16]:
    """The f16 values of e4m3fn numbers or their codes u8[...], exact (subnormal codes become normal f16 numbers)."""
    return np.asarray(E4M3_F16[_codes("e4m3", codes)])


def encode_e4m3(values: ArrayLike) -> NDArray[np.uint8]:
    """Nearest e4m3fn codes u8[...] of floating-point values, ties to even, in one rounding.

    Values beyond +-448, infinity included, saturate to +-448. Every NaN becomes 0x7F. A zero keeps its sign,
    and so does a value that underflows to zero. Raises TypeError for other dtypes.
    """
    return _narrowed("e4m3", values).view(np.uint8)


def bits(values: ArrayLike) -> NDArray[Any]:
    """The bit patterns of f16, f32 or f64 values as u16, u32 or u64 of the same shape.

    A Python float is f64. Raises TypeError for other dtypes.
    """
    x = np.asarray(values)
    if x.dtype not in _UNSIGNED:
        raise TypeError(f"expected f16, f32 or f64, got {x.dtype}")
    return np.asarray(x.view(_UNSIGNED[x.dtype]))


def from_bits(patterns: NDArray[Any]) -> NDArray[Any]:
    """The f16, f32 or f64 values of bit patterns u16, u32 or u64. Raises TypeError for other dtypes."""
    x = np.asarray(patterns)
    if x.dtype not in _FLOAT:
        raise TypeError(f"expected bit patterns u16, u32 or u64, got {x.dtype}")
    return np.asarray(x.view(_FLOAT[x.dtype]))


def hex_bits(value: Float | float) -> str:
    """The bits of one f16, f32 or f64 as "0x" and 4, 8 or 16 hexadecimal digits; the width gives the type.

    JSON has neither NaN nor infinity. This text keeps both, with the payload of NaN and the sign of zero.
    Raises TypeError for an array or another dtype.
    """
    pattern = bits(value)
    if pattern.shape:
        raise TypeError(f"expected one float, got an array of shape {pattern.shape}")
    return f"0x{int(pattern):0{pattern.itemsize * 2}x}"


def from_hex_bits(text: str) -> Float:
    """The value of a text that `hex_bits` made. Raises ValueError for other texts."""
    match = re.fullmatch(r"0x([0-9a-fA-F]+)", text)
    kind = _FLOAT_OF_DIGITS.get(len(match[1])) if match else None
    if match is None or kind is None:
        raise ValueError(f"expected 0x and 4 (f16), 8 (f32) or 16 (f64) hexadecimal digits, got {text!r}")
    pattern = np.array(int(match[1], 16), _UNSIGNED[np.dtype(kind)])
    value: Float = pattern.view(kind)[()]
    return value


def ulp_distance(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """The number of representable steps from a to b, i64[...], for two arrays of one floating-point dtype, also of
    bf16, e4m3, e5m2 or e2m1.

    +0 and -0 are 0 steps apart; the largest finite number and infinity are 1 step apart. Where either is NaN the
    distance is `NAN_DISTANCE`, also between equal NaNs; a distance of f64 that is no smaller is `NAN_DISTANCE - 1`.
    Raises TypeError for other or unequal dtypes.
    """
    left, right = np.asarray(a), np.asarray(b)
    if left.dtype != right.dtype or left.dtype not in FLOATS:
        raise TypeError(f"expected two arrays of one floating-point dtype, got {left.dtype} and {right.dtype}")
    return _distance(_ordinal(left), _ordinal(right), np.isnan(left) | np.isnan(right))


def ulp_distance_e4m3(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    """`ulp_distance` of two arrays of e4m3fn numbers or their codes u8[...]. There is no infinity: the largest finite
    number is last."""
    return ulp_distance(as_dtype("e4m3", a), as_dtype("e4m3", b))


def decode_bf16(codes: NDArray[Any]) -> NDArray[np.float32]:
    """The values of bfloat16 numbers or their codes u16[...] as f32[...], exact. Raises TypeError for other dtypes."""
    return np.asarray((_codes("bf16", codes).astype(np.uint32) << 16).view(np.float32))


def encode_bf16(values: ArrayLike) -> NDArray[np.uint16]:
    """Nearest bfloat16 codes u16[...] of floating-point values, ties to even, in one rounding.

    Values past the largest finite number become infinity; every NaN becomes 0x7FFF. Raises TypeError for other dtypes.
    """
    return _narrowed("bf16", values).view(np.uint16)


def ulp_distance_bf16(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    """`ulp_distance` of two arrays of bfloat16 numbers or their codes u16[...]."""
    return ulp_distance(as_dtype("bf16", a), as_dtype("bf16", b))


def encoded(dtype: str, values: ArrayLike) -> NDArray[Any]:
    """Floating-point values rounded once, to nearest even, to f64, f32, f16, bf16, e4m3, e5m2 or e2m1.

    Values beyond the greatest become infinity, where the format has one, else the greatest. e2m1 has no NaN: it
    becomes 6. Raises TypeError for values of other dtypes.
    """
    if dtype in _NARROW:
        return _narrowed(dtype, values)
    x = np.asarray(values)
    _require_float(x)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x.astype(DTYPES[dtype]))


def beyond(dtype: str, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a floating-point value is one that a floating-point format does not have: a finite number that rounds to
    infinity or past the greatest, and infinity or NaN where the format has none."""
    if dtype not in _NARROW:
        return np.asarray(np.isfinite(values) & ~np.isfinite(encoded(dtype, values)))
    kind = _NARROW[dtype]
    with np.errstate(invalid="ignore"):
        wide = np.asarray(values).astype(np.float64)
    lost = ~(np.abs(_rounded(kind, wide)) <= kind.greatest)
    with_infinity = kind.infinity & np.isinf(wide)
    with_nan = (dtype != "e2m1") & np.isnan(wide)
    return np.asarray(lost & ~with_infinity & ~with_nan)


def as_dtype(dtype: str, stored: NDArray[Any]) -> NDArray[Any]:
    """An array of a dtype of buffers, from one or from the codes of its elements, one an element.

    Codes are unsigned integers as wide as an element. Raises TypeError for anything else.
    """
    x, kind = np.asarray(stored), DTYPES[dtype]
    if x.dtype == kind:
        return x
    if x.dtype != np.dtype(f"u{kind.itemsize}"):
        raise TypeError(f"expected {dtype} or its codes u{8 * kind.itemsize}, got {x.dtype}")
    return np.asarray(x != 0 if dtype == "bool" else x.view(kind))


def stored_values(dtype: str, stored: NDArray[Any]) -> NDArray[Any]:
    """What a buffer of any dtype stores, as numbers of numpy: f32 for bf16 and what is narrower, i8 and u8 for i4 and
    u4. `stored` may hold the codes, as unsigned integers."""
    if dtype in _NARROW:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return np.asarray(as_dtype(dtype, stored).astype(np.float32))
    if dtype in ("i4", "u4"):
        return np.asarray(as_dtype(dtype, stored).astype(np.int8 if dtype == "i4" else np.uint8))
    return np.asarray(stored)


def _narrowed(dtype: str, values: ArrayLike) -> NDArray[Any]:
    """The nearest numbers of a narrow format, ties to even, in one rounding."""
    x, kind = np.asarray(values), _NARROW[dtype]
    _require_float(x)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = x.astype(np.float64)
    rounded = _rounded(kind, np.where(np.isnan(wide), 0, wide))
    past = np.copysign(np.inf if kind.infinity else kind.greatest, wide)
    rounded = np.where(np.abs(rounded) <= kind.greatest, rounded, past)
    codes = rounded.astype(DTYPES[dtype]).view(f"u{DTYPES[dtype].itemsize}")
    return np.asarray(np.where(np.isnan(wide), codes.dtype.type(kind.nan), codes).view(DTYPES[dtype]))


def _rounded(kind: _Narrow, wide: NDArray[np.float64]) -> NDArray[np.float64]:
    """f64 values rounded to the significand of a format, as though it had no greatest number."""
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(wide), wide, 0)
        # frexp gives [0.5, 1); below the least normal number, and at 0, the spacing stays that of the subnormals.
        exponent = np.maximum(np.frexp(finite)[1] - 1, kind.least_exponent)
        shift = kind.significand - 1 - exponent
        return np.asarray(np.where(np.isfinite(wide), np.ldexp(np.rint(np.ldexp(finite, shift)), -shift), wide))


def fma32(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[np.float32]:
    """a*b + c rounded once to nearest even, f32[...] by f32[...] broadcast: IEEE-754 fusedMultiplyAdd.

    Subnormals are kept, overflow goes to infinity, 0*inf and inf-inf give a quiet NaN (its payload is
    unspecified). Raises TypeError unless all three are f32.

    The product of two 24-bit significands is exact in f64. Its sum with c is not, and rounding it twice
    would be wrong at ties, so the f64 sum is rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
    correctly-rounded sums: proved algorithms using rounding to odd", 2008): 53 >= 24 + 2 bits make the
    second rounding safe. No intermediate leaves the normal range of f64.
    """
    x, y, z = np.asarray(a), np.asarray(b), np.asarray(c)
    if not x.dtype == y.dtype == z.dtype == np.float32:
        raise TypeError(f"expected three f32 arrays, got {x.dtype}, {y.dtype} and {z.dtype}")
    with np.errstate(all="ignore"):
        product = np.multiply(x, y, dtype=np.float64)
        addend = z.astype(np.float64)
        total = product + addend
        # TwoSum (Knuth): total + error is the exact sum.
        rest = total - product
        error = (product - (total - rest)) + (addend - rest)
        patterns = total.view(np.int64)
        inexact = (error != 0) & (patterns & 1 == 0) & np.isfinite(total)
        # The exact sum lies between total and the neighbour on error's side; that neighbour is odd.
        outward = np.signbit(error) == np.signbit(total)
        odd = patterns + np.where(inexact, np.where(outward, 1, -1), 0)
        return np.asarray(odd.view(np.float64).astype(np.float32))


def _codes(dtype: str, codes: ArrayLike) -> NDArray[Any]:
    """The codes of the elements of a narrow format."""
    x, kind = np.asarray(codes), DTYPES[dtype]
    if x.dtype not in (kind, np.dtype(f"u{kind.itemsize}")):
        raise TypeError(f"expected {dtype} or its codes u{8 * kind.itemsize}, got {x.dtype}")
    return np.asarray(x.view(f"u{kind.itemsize}"))


def _distance(left: NDArray[np.int64], right: NDArray[np.int64], nan: NDArray[np.bool_]) -> NDArray[np.int64]:
    """|left - right| without overflow: two ordinals of f64 can be further apart than an i64 counts."""
    high, low = np.maximum(left, right).astype(np.uint64), np.minimum(left, right).astype(np.uint64)
    with np.errstate(over="ignore"):  # modulo 2**64 the difference is right
        apart = high - low
    return np.where(nan, NAN_DISTANCE, np.minimum(apart, np.uint64(NAN_DISTANCE - 1)).astype(np.int64))


def _require_float(x: NDArray[Any]) -> None:
    if x.dtype not in FLOATS:
        raise TypeError(f"expected {', '.join(FLOATS.values())}, got {x.dtype}")


def _ordinal(x: NDArray[Any]) -> NDArray[np.int64]:
    """Position on the number line: monotone in the value, both zeros at 0."""
    pattern = x.view(f"u{x.itemsize}").astype(np.int64)
    width = 4 if FLOATS[x.dtype] == "e2m1" else 8 * x.itemsize
    sign = np.int64(1) << (width - 1)
    return np.where(pattern & sign, sign - pattern, pattern)
