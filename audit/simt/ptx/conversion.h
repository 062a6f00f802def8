// cvt, as chapter 9.7.9 of the PTX ISA defines it.
#pragma once

#include <limits>

#include "floating.h"

namespace ptx {

template <typename To, typename From>
PTX_INLINE To clamped_to(From x) {
  const s128 wide = x, least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  return static_cast<To>(wide < least ? least : wide > most ? most : wide);
}

PTX_INLINE f32 integral_rni(f32 x) { return __builtin_rintf(x); }
PTX_INLINE f32 integral_rzi(f32 x) { return __builtin_truncf(x); }
PTX_INLINE f32 integral_rmi(f32 x) { return __builtin_floorf(x); }
PTX_INLINE f32 integral_rpi(f32 x) { return __builtin_ceilf(x); }
PTX_INLINE f64 integral_rni(f64 x) { return __builtin_rint(x); }
PTX_INLINE f64 integral_rzi(f64 x) { return __builtin_trunc(x); }
PTX_INLINE f64 integral_rmi(f64 x) { return __builtin_floor(x); }
PTX_INLINE f64 integral_rpi(f64 x) { return __builtin_ceil(x); }

// Saturates. NaN becomes 0, except from f64 and to 64 bits, where it becomes the word with the highest bit alone.
template <typename To, typename From>
PTX_INLINE To to_integer(From x) {
  constexpr unsigned width = 8 * sizeof(To);
  constexpr From end = static_cast<From>(static_cast<u128>(1) << (std::is_signed_v<To> ? width - 1 : width));
  if (x != x)
    return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(static_cast<u64>(1) << (width - 1)) : To{0};
  if (x >= end) return std::numeric_limits<To>::max();
  if (x <= (std::is_signed_v<To> ? -end : From{0})) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

// Conversions of integers and doubles with a rounding mode of PTX.
template <typename Mode, typename From>
inline f32 directed_f32(From x) {
  f32 nearest = static_cast<f32>(x);
  if (std::is_same_v<Mode, rn> || nearest != nearest) return nearest;
  int order;  // of the rounded value to x
  if constexpr (std::is_integral_v<From>) {
    const s128 exact = x, got = static_cast<s128>(nearest);
    order = got < exact ? -1 : got > exact ? 1 : 0;
  } else {
    order = static_cast<f64>(nearest) < x ? -1 : static_cast<f64>(nearest) > x ? 1 : 0;
  }
  if (order > 0 && (std::is_same_v<Mode, rm> || (std::is_same_v<Mode, rz> && nearest > 0))) return std::nextafterf(nearest, -INFINITY);
  if (order < 0 && (std::is_same_v<Mode, rp> || (std::is_same_v<Mode, rz> && nearest < 0))) return std::nextafterf(nearest, INFINITY);
  return nearest;
}
template <typename Mode, typename From>
inline f64 directed_f64(From x) {
  const f64 nearest = static_cast<f64>(x);
  if (std::is_same_v<Mode, rn>) return nearest;
  const s128 exact = x, got = static_cast<s128>(nearest);
  if (got > exact && (std::is_same_v<Mode, rm> || (std::is_same_v<Mode, rz> && nearest > 0))) return std::nextafter(nearest, -INFINITY);
  if (got < exact && (std::is_same_v<Mode, rp> || (std::is_same_v<Mode, rz> && nearest < 0))) return std::nextafter(nearest, INFINITY);
  return nearest;
}

// To a type of 16 bits from f32, f64 or an integer. `Mantissa` and `Smallest` describe it as in simt_minifloat.h.
template <Rounding Mode>
inline u16 half_code(f64 x, unsigned mantissa, int smallest, unsigned infinity) {
  const bool negative = std::signbit(x);
  const f64 magnitude = std::fabs(x);
  const u16 sign = negative ? 0x8000 : 0;
  if (x != x) return 0x7FFF;
  if (magnitude == INFINITY) return static_cast<u16>(sign | infinity);
  if (magnitude == 0) return sign;
  const int exponent = std::ilogb(magnitude) < smallest ? smallest : std::ilogb(magnitude);
  if (exponent > 1 - smallest) {  // too large for any finite number
    const bool grows = Mode == Rounding::rn || (Mode == Rounding::rp && !negative) || (Mode == Rounding::rm && negative);
    return static_cast<u16>(sign | (grows ? infinity : infinity - 1));
  }
  const f64 steps = std::ldexp(magnitude, static_cast<int>(mantissa) - exponent);
  f64 whole = Mode == Rounding::rn ? std::nearbyint(steps) : std::floor(steps);
  if (((Mode == Rounding::rp && !negative) || (Mode == Rounding::rm && negative)) && whole != steps) whole += 1;
  const u32 code = (static_cast<u32>(exponent - smallest) << mantissa) + static_cast<u32>(whole);
  return static_cast<u16>(sign | (code < infinity ? code : infinity));
}
template <typename Half, Rounding Mode, typename From>
PTX_INLINE Half narrowed(From x) {
  if constexpr (Mode == Rounding::rn && std::is_same_v<From, f32>) return rounded<Half>(x);
  f64 wide = static_cast<f64>(x);
  if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {  // to odd, so that it is rounded once
    const s128 lost = static_cast<s128>(x) - static_cast<s128>(wide);
    if (lost != 0 && (bits(wide) & 1) == 0) wide = as_f64(bits(wide) + ((lost > 0) == (wide > 0) ? 1ULL : ~0ULL));
  }
  if constexpr (std::is_same_v<Half, f16>)
    return {half_code<Mode>(wide, 10, -14, 0x7C00)};
  else
    return {half_code<Mode>(wide, 7, -126, 0x7F80)};
}

template <Rounding Mode>
PTX_INLINE u32 rounded_to_tf32(f32 x, bool drops_negative) {
  if (x != x) return 0x7FFFFFFF;
  if (drops_negative && is_negative(x)) return 0;
  const u32 word = bits(x);
  if (x - x != 0) return word;
  if (Mode == Rounding::rz) return word & ~0x1FFFU;
  if (Mode == Rounding::rna) return (word + 0x1000) & ~0x1FFFU;
  return (word + 0xFFF + (word >> 13 & 1)) & ~0x1FFFU;
}

// e4m3 has no infinity; with satfinite e5m2 never becomes one. NaN is 0x7F in both.
PTX_INLINE u8 small_from(f32 x, int mantissa, int smallest, unsigned largest) {
  if (x != x) return 0x7F;
  const unsigned code = simt::minifloat_code(std::fabs(static_cast<f64>(x)), mantissa, smallest, largest, false);
  return static_cast<u8>((is_negative(x) ? 0x80 : 0) | (code > largest ? largest : code));
}
PTX_INLINE u8 to_e4m3x2(f32 x) { return small_from(x, 3, -6, 0x7E); }
PTX_INLINE u8 to_e5m2x2(f32 x) { return small_from(x, 2, -14, 0x7B); }
PTX_INLINE f32 from_e4m3x2(u32 code) {
  const u32 exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7F) == 0x7F) return as_f32(0x7FFFFFFF);
  const f32 magnitude = exponent == 0 ? static_cast<f32>(mantissa) * 0x1p-9f : as_f32((exponent + 120) << 23 | mantissa << 20);
  return code & 0x80 ? -magnitude : magnitude;
}
PTX_INLINE f32 from_e5m2x2(u32 code) { return simt::float_from_half(static_cast<unsigned short>(code << 8)); }

}  // namespace ptx
