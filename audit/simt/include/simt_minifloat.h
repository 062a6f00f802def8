// Rounding to small floating-point formats, and half to float.
#pragma once

#include "simt_math.h"

namespace simt {

// For a format with `mantissa` stored bits whose smallest normal number is 2^smallest. Returns the exponent and
// mantissa bits of |x| (x is not NaN), or one more than `largest_code` on overflow.
inline unsigned minifloat_code(double magnitude, int mantissa, int smallest, unsigned largest_code, bool to_zero) {
  if (magnitude == 0) return 0;
  if (magnitude >= 0x1p+20) return to_zero && magnitude < INFINITY ? largest_code : largest_code + 1;
  const int exponent = ilogb(magnitude) < smallest ? smallest : ilogb(magnitude);
  const double steps = ldexp(magnitude, mantissa - exponent);
  const unsigned rounded = static_cast<unsigned>(to_zero ? floor(steps) : nearbyint(steps));
  const unsigned code = (static_cast<unsigned>(exponent - smallest) << mantissa) + rounded;
  return code <= largest_code ? code : to_zero ? largest_code : largest_code + 1;
}

constexpr unsigned short kHalfNan = 0x7FFF;  // a GPU's only NaN result in f16
constexpr unsigned kHalfLargest = 0x7BFF;

inline unsigned short half_from_double(double x, bool to_zero = false) {
  if (x != x) return kHalfNan;
  const unsigned code = minifloat_code(fabs(x), 10, -14, kHalfLargest, to_zero);
  return static_cast<unsigned short>((signbit(x) ? 0x8000U : 0U) | code);
}

// Rounds to nearest even, from 65520 on to infinity; every NaN becomes 0x7FFF.
inline unsigned short half_from_float(float x) {
#ifdef __F16C__
  typedef float four __attribute__((vector_size(16)));
  if (x != x) return kHalfNan;
  return static_cast<unsigned short>(__builtin_ia32_vcvtps2ph(four{x, 0, 0, 0}, 0)[0]);
#else
  return half_from_double(static_cast<double>(x));
#endif
}

// Exact; every NaN becomes 0x7FFFFFFF.
inline float float_from_half(unsigned short bits) {
  if ((bits & 0x7FFF) > 0x7C00) return bit_cast<float>(0x7FFFFFFF);
#ifdef __F16C__
  typedef short eight __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps(eight{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
#else
  const int exponent = bits >> 10 & 31, mantissa = bits & 0x3FF;
  const float magnitude = exponent == 31  ? INFINITY
                          : exponent == 0 ? ldexpf(static_cast<float>(mantissa), -24)
                                          : ldexpf(static_cast<float>(mantissa | 0x400), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
#endif
}

// a*b+c rounded once to half: the sum in double is rounded to odd, so that the second rounding is correct.
inline unsigned short half_fma(unsigned short a, unsigned short b, unsigned short c) {
  const double product = static_cast<double>(float_from_half(a)) * static_cast<double>(float_from_half(b));
  const double addend = static_cast<double>(float_from_half(c));
  double sum = product + addend;
  if (sum - sum == 0) {
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);  // exact
    unsigned long long bits = bit_cast<unsigned long long>(sum);
    if (lost != 0 && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1ULL : ~0ULL;
    sum = bit_cast<double>(bits);
  }
  return half_from_double(sum);
}

}  // namespace simt
