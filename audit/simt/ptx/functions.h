// Functions that PTX calls by name and does not define (audit/ptx/libdevice.py): the C library computes most of them.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../ptx_support.h"
#include "conversion.h"
#include "floating.h"

namespace ptx {

template <typename T>
PTX_INLINE T argument(const unsigned char* at) {
  return *reinterpret_cast<const T*>(at);
}
template <typename T, typename Value>
PTX_INLINE void give(unsigned char* at, Value value) {
  *reinterpret_cast<T*>(at) = static_cast<T>(value);
}

template <typename T>
inline T integer_power(T base, s32 exponent) {
  u32 left = exponent < 0 ? 0U - static_cast<u32>(exponent) : static_cast<u32>(exponent);
  T result = 1;
  for (T power = base; left != 0; left >>= 1, power *= power)
    if (left & 1) result *= power;
  return exponent < 0 ? 1 / result : result;
}

constexpr f64 kPi = 3.14159265358979323846;
// Reduced exactly before the multiplication: to |x| <= 1/4 by the period and the symmetries.
inline f64 sine_of_pi(f64 x) {
  if (x - x != 0) return x - x;
  const f64 rest = x - 2 * std::nearbyint(x / 2), size = std::fabs(rest);
  const f64 found = size <= 0.25   ? std::sin(kPi * size)
                    : size <= 0.75 ? std::cos(kPi * (0.5 - size))
                                   : std::sin(kPi * (1 - size));
  return std::copysign(found, rest == 0 ? x : rest);
}
inline f64 cosine_of_pi(f64 x) {
  if (x - x != 0) return x - x;
  const f64 size = std::fabs(x - 2 * std::nearbyint(x / 2));
  return size <= 0.25 ? std::cos(kPi * size) : size <= 0.75 ? std::sin(kPi * (0.5 - size)) : -std::cos(kPi * (1 - size));
}
inline f32 sine_of_pi(f32 x) { return canonical(static_cast<f32>(sine_of_pi(static_cast<f64>(x)))); }
inline f32 cosine_of_pi(f32 x) { return canonical(static_cast<f32>(cosine_of_pi(static_cast<f64>(x)))); }

// Acklam's rational approximation of the inverse of the normal distribution, refined by two steps of Halley on erfc.
inline f64 inverse_normal_cdf(f64 p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  static constexpr f64 a[] = {-3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02,
                              1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr f64 b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                              6.680131188771972e+01,  -1.328068155288572e+01};
  static constexpr f64 c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                              -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr f64 d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  f64 x;
  if (p < 0.02425 || p > 1 - 0.02425) {
    const f64 tail = p < 0.5 ? p : 1 - p, q = std::sqrt(-2 * std::log(tail));
    x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) / ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    if (p > 0.5) x = -x;
  } else {
    const f64 q = p - 0.5, r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  for (int i = 0; i < 2; ++i) {
    const f64 error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p, u = error * std::sqrt(2 * kPi) * std::exp(x * x / 2);
    if (u - u == 0) x -= u / (1 + x * u / 2);
  }
  return x;
}
inline f64 inverse_erf(f64 y) {
  if (!(y >= -1 && y <= 1)) return NAN;
  if (y == 0 || y == 1 || y == -1) return y == 0 ? y : y * INFINITY;
  f64 x = inverse_normal_cdf((y + 1) / 2) / std::sqrt(2.0);
  for (int i = 0; i < 2; ++i) {
    const f64 u = (std::erf(x) - y) / (2 / std::sqrt(kPi) * std::exp(-x * x));
    if (u - u == 0) x -= u / (1 + x * u);
  }
  return x;
}
inline f64 inverse_erfc(f64 y) { return y < 0 || y > 2 ? NAN : -inverse_normal_cdf(y / 2) / std::sqrt(2.0); }
// exp(x^2) erfc(x); far out by the asymptotic series, Abramowitz and Stegun 7.1.23.
inline f64 scaled_erfc(f64 x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const f64 r = 1 / (2 * x * x);
  return (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r)))) / (x * std::sqrt(kPi));
}
inline f64 normal_cdf(f64 x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
#define PTX_BY_DOUBLE(name) \
  inline f32 name(f32 x) { return canonical(static_cast<f32>(name(static_cast<f64>(x)))); }
PTX_BY_DOUBLE(inverse_normal_cdf) PTX_BY_DOUBLE(inverse_erf) PTX_BY_DOUBLE(inverse_erfc) PTX_BY_DOUBLE(scaled_erfc)
PTX_BY_DOUBLE(normal_cdf)
#undef PTX_BY_DOUBLE

template <typename T, typename... Others>
inline T norm_of(T a, Others... others) {
  f64 length = static_cast<f64>(a);
  ((length = ::hypot(length, static_cast<f64>(others))), ...);
  return static_cast<T>(length);
}

// f(x, T* a, T* b) and the like: each parameter is the address of an argument.
template <typename T>
inline void sine_and_cosine(const unsigned char* x, const unsigned char* s, const unsigned char* c) {
  const T at = argument<T>(x);
  *reinterpret_cast<T*>(argument<u64>(s)) = canonical(std::sin(at));
  *reinterpret_cast<T*>(argument<u64>(c)) = canonical(std::cos(at));
}
template <typename T>
inline void sine_and_cosine_of_pi(const unsigned char* x, const unsigned char* s, const unsigned char* c) {
  const T at = argument<T>(x);
  *reinterpret_cast<T*>(argument<u64>(s)) = sine_of_pi(at);
  *reinterpret_cast<T*>(argument<u64>(c)) = cosine_of_pi(at);
}
template <typename T>
inline void split_exponent(unsigned char* result, const unsigned char* x, const unsigned char* to) {
  int exponent = 0;
  give<T>(result, canonical(std::frexp(argument<T>(x), &exponent)));
  *reinterpret_cast<s32*>(argument<u64>(to)) = exponent;
}
template <typename T>
inline void split_integer(unsigned char* result, const unsigned char* x, const unsigned char* to) {
  T whole = 0;
  give<T>(result, canonical(std::modf(argument<T>(x), &whole)));
  *reinterpret_cast<T*>(argument<u64>(to)) = whole;
}
template <typename T>
inline void remainder_and_quotient(unsigned char* result, const unsigned char* x, const unsigned char* y, const unsigned char* to) {
  int quotient = 0;
  give<T>(result, canonical(std::remquo(argument<T>(x), argument<T>(y), &quotient)));
  *reinterpret_cast<s32*>(argument<u64>(to)) = quotient;
}

inline void assertion_failed(const unsigned char* message, const unsigned char* file, const unsigned char* line,
                             const unsigned char*, const unsigned char*, simt::Site) {
  simt::assertion_failed(reinterpret_cast<const char*>(argument<u64>(message)),
                         {reinterpret_cast<const char*>(argument<u64>(file)), argument<s32>(line)});
}
inline void allocate(unsigned char* result, const unsigned char* bytes) { give<u64>(result, reinterpret_cast<u64>(std::malloc(argument<u64>(bytes)))); }
template <typename... Size>
inline void release(const unsigned char* at, Size...) { std::free(reinterpret_cast<void*>(argument<u64>(at))); }

// printf: the arguments lie one after another, each aligned to its size; floats are doubles, as in C.
inline void print_formatted(unsigned char* result, const unsigned char* format_at, const unsigned char* values_at) {
  const char* format = reinterpret_cast<const char*>(argument<u64>(format_at));
  u64 at = argument<u64>(values_at);
  std::string text;
  s32 count = 0;
  const auto next = [&](unsigned bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const u64 here = at;
    at += bytes;
    return reinterpret_cast<const unsigned char*>(here);
  };
  while (*format != 0) {
    if (*format != '%') {
      text += *format++;
      continue;
    }
    std::string specification(1, *format++);
    unsigned longs = 0;
    while (*format != 0 && std::string("-+ #0123456789.*hlLjzt").find(*format) != std::string::npos) {
      if (*format == '*') specification += std::to_string(argument<s32>(next(4)));
      else if (*format == 'l' || *format == 'j' || *format == 'z' || *format == 't') ++longs;
      else if (*format != 'h' && *format != 'L') specification += *format;
      ++format;
    }
    const char kind = *format;
    if (kind == 0) break;
    ++format;
    char piece[512];
    if (kind == '%') {
      text += '%';
      continue;
    }
    ++count;
    if (std::string("diouxXc").find(kind) != std::string::npos) {
      const bool is_signed = kind == 'd' || kind == 'i' || kind == 'c';
      const s64 value = longs != 0 ? argument<s64>(next(8))
                        : is_signed ? argument<s32>(next(4))
                                    : static_cast<s64>(argument<u32>(next(4)));
      if (kind == 'c') std::snprintf(piece, sizeof piece, (specification + "c").c_str(), static_cast<int>(value));
      else std::snprintf(piece, sizeof piece, (specification + "ll" + kind).c_str(), static_cast<long long>(value));
    } else if (kind == 's') {
      std::snprintf(piece, sizeof piece, (specification + "s").c_str(), reinterpret_cast<const char*>(argument<u64>(next(8))));
    } else if (kind == 'p') {
      std::snprintf(piece, sizeof piece, (specification + "p").c_str(), reinterpret_cast<void*>(argument<u64>(next(8))));
    } else {
      std::snprintf(piece, sizeof piece, (specification + kind).c_str(), argument<f64>(next(8)));
    }
    text += piece;
  }
  std::printf("%s", text.c_str());
  give<s32>(result, count);
}

}  // namespace ptx
