"""Number formats: e4m3fn, binary16, ulp distances, bit patterns as text, a correctly rounded binary32 fma.

numpy has no 8-bit float and no fma, and the casts of libraries differ between versions (overflow to NaN or to
the largest value), so this module defines both. Integers stand for bit patterns throughout.
"""

import re
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def decode_e4m3(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The f32 values of e4m3fn codes u8[...], exact. There is no infinity; 0x7F and 0xFF are NaN."""
    return E4M3_F32[_codes(codes)]


def decode_e4m3_f16(codes: NDArray[np.uint8]) -> NDArray[np.float16]:
    """The f16 values of e4m3fn codes u8[...], exact (subnormal codes become normal f16 numbers)."""
    return E4M3_F16[_codes(codes)]


def encode_e4m3(values: ArrayLike) -> NDArray[np.uint8]:
    """Nearest e4m3fn codes u8[...] of f16, f32 or f64 values, ties to even, in one rounding.

    Values beyond +-448, infinity included, saturate to +-448. Every NaN becomes 0x7F. A zero keeps its sign,
    and so does a value that underflows to zero. Raises TypeError for other dtypes.
    """
    x = np.asarray(values)
    _require_float(x)
    nan = np.isnan(x)
    magnitude = np.minimum(np.abs(np.where(nan, 0, x).astype(np.float64)), E4M3_MAX)
    # frexp gives [0.5, 1); below 2^-6, and at 0, the spacing stays that of the subnormals, 2^-9.
    exponent = np.frexp(np.maximum(magnitude, 2.0**-6))[1] - 1
    steps = np.rint(np.ldexp(magnitude, 3 - exponent)).astype(np.int64)
    # A normal number has 8..15 steps and exponent field exponent + 7; 16 steps carry into the next field.
    code = (exponent + 6) * 8 + steps + np.where(np.signbit(x), 0x80, 0)
    return np.where(nan, E4M3_NAN, code).astype(np.uint8)


def bits(values: ArrayLike) -> NDArray[Any]:
    """The bit patterns of f16, f32 or f64 values as u16, u32 or u64 of the same shape.

    A Python float is f64. Raises TypeError for other dtypes.
    """
    x = np.asarray(values)
    _require_float(x)
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
    """The number of representable steps from a to b, i64[...], for two f16, two f32 or two f64 arrays.

    +0 and -0 are 0 steps apart; the largest finite number and infinity are 1 step apart. Where either is NaN the
    distance is `NAN_DISTANCE`, also between equal NaNs; a distance of f64 that is no smaller is `NAN_DISTANCE - 1`.
    Raises TypeError for other or unequal dtypes.
    """
    left, right = np.asarray(a), np.asarray(b)
    if left.dtype != right.dtype or left.dtype not in _UNSIGNED:
        raise TypeError(f"expected two arrays of f16, of f32 or of f64, got {left.dtype} and {right.dtype}")
    return _distance(_ordinal(left), _ordinal(right), np.isnan(left) | np.isnan(right))


def ulp_distance_e4m3(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.int64]:
    """`ulp_distance` of two arrays of e4m3fn codes u8[...]. There is no infinity: the largest finite number is last."""
    left, right = _codes(a).astype(np.int64), _codes(b).astype(np.int64)
    one, other = (np.where(code & 0x80, -(code & 0x7F), code) for code in (left, right))
    return _distance(one, other, (left & 0x7F == E4M3_NAN) | (right & 0x7F == E4M3_NAN))


def decode_bf16(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The values of bfloat16 bit patterns u16[...] as f32[...], exact. Raises TypeError for other dtypes."""
    return np.asarray((_bf16_codes(codes).astype(np.uint32) << 16).view(np.float32))


def encode_bf16(values: ArrayLike) -> NDArray[np.uint16]:
    """Nearest bfloat16 bit patterns u16[...] of f16, f32 or f64 values, ties to even, in one rounding.

    Values past the largest finite number become infinity; every NaN becomes 0x7FFF. Raises TypeError for other dtypes.
    """
    x = np.asarray(values)
    _require_float(x)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        exponent = np.maximum(np.frexp(np.where(np.isfinite(wide), wide, 0))[1], -125)  # subnormals keep their spacing
        rounded = np.ldexp(np.rint(np.ldexp(wide, 8 - exponent)), exponent - 8).astype(np.float32)
    codes = (rounded.view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(np.where(np.isnan(x), np.uint16(0x7FFF), codes))


def ulp_distance_bf16(a: NDArray[np.uint16], b: NDArray[np.uint16]) -> NDArray[np.int64]:
    """`ulp_distance` of two arrays of bfloat16 bit patterns u16[...]."""
    left, right = _bf16_codes(a).astype(np.int64), _bf16_codes(b).astype(np.int64)
    one, other = (np.where(code & 0x8000, -(code & 0x7FFF), code) for code in (left, right))
    return _distance(one, other, (left & 0x7FFF > 0x7F80) | (right & 0x7FFF > 0x7F80))


def encoded(dtype: str, values: ArrayLike) -> NDArray[Any]:
    """Floating-point values as a buffer of the dtype f64, f32, f16, bf16 or e4m3 stores them, each rounded once."""
    x = np.asarray(values)
    if dtype == "e4m3":
        return encode_e4m3(x)
    return (
        encode_bf16(x) if dtype == "bf16" else np.asarray(x.astype({"f64": "<f8", "f32": "<f4", "f16": "<f2"}[dtype]))
    )


def stored_values(dtype: str, stored: NDArray[Any]) -> NDArray[Any]:
    """What a buffer of any dtype stores, as numbers: f32 for bf16 and e4m3, which numpy does not have."""
    if dtype == "e4m3":
        return decode_e4m3(stored)
    return decode_bf16(stored) if dtype == "bf16" else np.asarray(stored)


def _bf16_codes(codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
    x = np.asarray(codes)
    if x.dtype != np.uint16:
        raise TypeError(f"expected bfloat16 bit patterns u16, got {x.dtype}")
    return x


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


def _codes(codes: ArrayLike) -> NDArray[np.uint8]:
    x = np.asarray(codes)
    if x.dtype != np.uint8:
        raise TypeError(f"expected e4m3 codes as u8, got {x.dtype}")
    return x


def _distance(left: NDArray[np.int64], right: NDArray[np.int64], nan: NDArray[np.bool_]) -> NDArray[np.int64]:
    """|left - right| without overflow: two ordinals of f64 can be further apart than an i64 counts."""
    high, low = np.maximum(left, right).astype(np.uint64), np.minimum(left, right).astype(np.uint64)
    with np.errstate(over="ignore"):  # modulo 2**64 the difference is right
        apart = high - low
    return np.where(nan, NAN_DISTANCE, np.minimum(apart, np.uint64(NAN_DISTANCE - 1)).astype(np.int64))


def _require_float(x: NDArray[Any]) -> None:
    if x.dtype not in _UNSIGNED:
        raise TypeError(f"expected f16, f32 or f64, got {x.dtype}")


def _ordinal(x: NDArray[Any]) -> NDArray[np.int64]:
    """Position on the number line: monotone in the value, both zeros at 0."""
    pattern = bits(x).astype(np.int64)
    sign = np.int64(1) << (8 * x.itemsize - 1)
    return np.where(pattern & sign, sign - pattern, pattern)
