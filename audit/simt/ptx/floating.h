// Floating-point instructions, as chapters 9.7.3 to 9.7.6 of the PTX ISA define them.
//
// A NaN result of an f32 instruction is 0x7FFFFFFF, of f16 and bf16 0x7FFF. Results of f64 that are NaN keep this CPU's
// bits. The approximations are those of the C library: inside the bound of the ISA, but not a GPU's bytes.
#pragma once

#include <cmath>

#include "words.h"

namespace ptx {

PTX_INLINE f32 canonical(f32 x) { return __builtin_expect(x != x, 0) ? as_f32(0x7FFFFFFF) : x; }
PTX_INLINE f64 canonical(f64 x) { return x; }

// A subnormal becomes zero with its sign.
PTX_INLINE f32 ftz(f32 x) { return __builtin_fabsf(x) < 0x1p-126f ? as_f32(bits(x) & 0x80000000) : x; }
PTX_INLINE f16 ftz(f16 x) { return (x.bits & 0x7C00) == 0 ? f16{static_cast<u16>(x.bits & 0x8000)} : x; }
PTX_INLINE f16x2 ftz(f16x2 x) { return {ftz(x.low), ftz(x.high)}; }

// To 0 ... 1; NaN becomes 0.
PTX_INLINE f32 sat(f32 x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
PTX_INLINE f64 sat(f64 x) { return x > 0 ? (x < 1 ? x : 1.0) : 0.0; }

PTX_INLINE f32 widened(f32 x) { return x; }
PTX_INLINE f32 widened(f16 x) { return simt::float_from_half(x.bits); }
PTX_INLINE f32 widened(bf16 x) { return canonical(as_f32(static_cast<u32>(x.bits) << 16)); }

PTX_INLINE u16 bf16_from_float(f32 x) {
  const u32 word = bits(x);
  return x != x ? 0x7FFF : static_cast<u16>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

// To nearest even, from f32.
template <typename Half>
PTX_INLINE Half rounded(f32 x) {
  if constexpr (std::is_same_v<Half, f16>)
    return {simt::half_from_float(x)};
  else
    return {bf16_from_float(x)};
}

// The sum of two doubles, rounded to odd: a further rounding to at most half as many bits is then correct.
inline f64 odd_sum(f64 a, f64 b) {
  f64 sum = a + b;
  if (sum - sum != 0) return sum;
  const f64 part = sum - a;
  const f64 lost = (a - (sum - part)) + (b - part);  // exact
  u64 word = bits(sum);
  if (lost != 0 && (word & 1) == 0) word += (lost > 0) == (sum > 0) ? 1ULL : ~0ULL;
  return as_f64(word);
}
// A double as a float rounded to odd.
inline f32 odd_float(f64 x) {
  const f32 nearest = static_cast<f32>(x);
  if (static_cast<f64>(nearest) == x || x != x) return nearest;
  u32 word = bits(nearest);
  if (nearest - nearest != 0) return x > 0 ? as_f32(0x7F7FFFFF) : as_f32(0xFF7FFFFF);
  const bool is_away = (static_cast<f64>(nearest) > x) == (x > 0);
  if ((word & 1) == 0) word = is_away ? (word & 0x7FFFFFFF) == 0 ? word | 1 : word - 1 : word + 1;
  return as_f32(word);
}
PTX_INLINE f16 half_from_exact(f64 x, f16) { return {simt::half_from_double(x)}; }
PTX_INLINE bf16 half_from_exact(f64 x, bf16) {
  // Beyond f32 only overflow and values below the least subnormal are left, which round alike.
  if (x - x != 0) return {bf16_from_float(static_cast<f32>(x))};
  const f32 odd = odd_float(x);
  return {std::fabs(x) >= 0x1.FFp+127 ? static_cast<u16>(x < 0 ? 0xFF80 : 0x7F80) : bf16_from_float(odd)};
}

// Sums and products of f16 and bf16 are rounded once: f32 holds more than twice their bits.
template <typename Half>
PTX_INLINE Half rounded_add(Half a, Half b) { return rounded<Half>(widened(a) + widened(b)); }
template <typename Half>
PTX_INLINE Half rounded_sub(Half a, Half b) { return rounded<Half>(widened(a) - widened(b)); }
template <typename Half>
PTX_INLINE Half rounded_mul(Half a, Half b) { return rounded<Half>(widened(a) * widened(b)); }
template <typename Half>
PTX_INLINE Half rounded_fma(Half a, Half b, Half c) {
  const f64 product = static_cast<f64>(widened(a)) * static_cast<f64>(widened(b));
  return half_from_exact(odd_sum(product, static_cast<f64>(widened(c))), Half{});
}
template <typename Half>
PTX_INLINE Half sum(Half a, Half b) { return rounded_add(a, b); }
template <typename Half>
PTX_INLINE Pair<Half> sum(Pair<Half> a, Pair<Half> b) { return {rounded_add(a.low, b.low), rounded_add(a.high, b.high)}; }

PTX_INLINE f16 sat(f16 x) { return rounded<f16>(sat(widened(x))); }
PTX_INLINE bf16 sat(bf16 x) { return rounded<bf16>(sat(widened(x))); }

// Negative numbers become +0; NaN stays.
PTX_INLINE f32 relu(f32 x) { return x != x ? as_f32(0x7FFFFFFF) : x > 0 ? x : 0.0f; }
PTX_INLINE f16 relu(f16 x) { return (x.bits & 0x7FFF) > 0x7C00 ? f16{0x7FFF} : x.bits & 0x8000 ? f16{0} : x; }
PTX_INLINE bf16 relu(bf16 x) { return (x.bits & 0x7FFF) > 0x7F80 ? bf16{0x7FFF} : x.bits & 0x8000 ? bf16{0} : x; }

PTX_INLINE f32 without_sign(f32 x) { return canonical(as_f32(bits(x) & 0x7FFFFFFF)); }
PTX_INLINE f64 without_sign(f64 x) { return __builtin_fabs(x); }
PTX_INLINE f16 without_sign(f16 x) { return {static_cast<u16>((x.bits & 0x7FFF) > 0x7C00 ? 0x7FFF : x.bits & 0x7FFF)}; }
PTX_INLINE bf16 without_sign(bf16 x) { return {static_cast<u16>((x.bits & 0x7FFF) > 0x7F80 ? 0x7FFF : x.bits & 0x7FFF)}; }
PTX_INLINE f32 negated(f32 x) { return canonical(-x); }
PTX_INLINE f64 negated(f64 x) { return -x; }
PTX_INLINE f16 negated(f16 x) { return {static_cast<u16>((x.bits & 0x7FFF) > 0x7C00 ? 0x7FFF : x.bits ^ 0x8000)}; }
PTX_INLINE bf16 negated(bf16 x) { return {static_cast<u16>((x.bits & 0x7FFF) > 0x7F80 ? 0x7FFF : x.bits ^ 0x8000)}; }
// copysign a, b: the magnitude of b with the sign of a.
PTX_INLINE f32 with_sign_of(f32 a, f32 b) { return as_f32((bits(a) & 0x80000000) | (bits(b) & 0x7FFFFFFF)); }
PTX_INLINE f64 with_sign_of(f64 a, f64 b) { return as_f64((bits(a) >> 63 << 63) | (bits(b) << 1 >> 1)); }

PTX_INLINE bool is_negative(f32 x) { return (bits(x) >> 31) != 0; }
PTX_INLINE bool is_negative(f64 x) { return (bits(x) >> 63) != 0; }
PTX_INLINE bool is_nan(f32 x) { return x != x; }
PTX_INLINE bool is_nan(f64 x) { return x != x; }
PTX_INLINE f32 quiet_nan(f32) { return as_f32(0x7FFFFFFF); }
PTX_INLINE f64 quiet_nan(f64 x) { return x + x; }

// +0 is larger than -0. One NaN is ignored, or with NaN decides; with xorsign the magnitudes count and the signs are
// multiplied.
template <bool Propagates, bool XorsSigns, bool IsMaximum, typename T>
PTX_INLINE T extreme(T a, T b) {
  const bool sign = XorsSigns && is_negative(a) != is_negative(b);
  if (XorsSigns) a = without_sign(a), b = without_sign(b);
  T result;
  if (is_nan(a) || is_nan(b)) {
    if (Propagates || (is_nan(a) && is_nan(b))) return quiet_nan(a);
    result = is_nan(a) ? b : a;
  } else if (a == b) {
    result = is_negative(a) == IsMaximum ? b : a;
  } else {
    result = (a < b) != IsMaximum ? a : b;
  }
  return sign ? negated(result) : result;
}
template <bool Propagates, bool XorsSigns, typename T>
PTX_INLINE T minimum(T a, T b) { return extreme<Propagates, XorsSigns, false>(a, b); }
template <bool Propagates, bool XorsSigns, typename T>
PTX_INLINE T maximum(T a, T b) { return extreme<Propagates, XorsSigns, true>(a, b); }
template <bool Propagates, bool XorsSigns, typename Half>
PTX_INLINE Half small_minimum(Half a, Half b) { return rounded<Half>(minimum<Propagates, XorsSigns>(widened(a), widened(b))); }
template <bool Propagates, bool XorsSigns, typename Half>
PTX_INLINE Half small_maximum(Half a, Half b) { return rounded<Half>(maximum<Propagates, XorsSigns>(widened(a), widened(b))); }
template <bool Propagates, bool XorsSigns, typename Half>
PTX_INLINE Pair<Half> small_minimum(Pair<Half> a, Pair<Half> b) {
  return {small_minimum<Propagates, XorsSigns>(a.low, b.low), small_minimum<Propagates, XorsSigns>(a.high, b.high)};
}
template <bool Propagates, bool XorsSigns, typename Half>
PTX_INLINE Pair<Half> small_maximum(Pair<Half> a, Pair<Half> b) {
  return {small_maximum<Propagates, XorsSigns>(a.low, b.low), small_maximum<Propagates, XorsSigns>(a.high, b.high)};
}

template <typename T>
PTX_INLINE bool is_finite_value(T x) { return x - x == 0; }
template <typename T>
PTX_INLINE bool is_infinite_value(T x) { return x == x && x - x != 0; }
template <typename T>
PTX_INLINE bool is_inf_value(T x) { return is_infinite_value(x); }
template <typename T>
PTX_INLINE bool is_number_value(T x) { return x == x; }
template <typename T>
PTX_INLINE bool is_notanumber_value(T x) { return x != x; }
template <typename T>
PTX_INLINE bool is_nan_value(T x) { return x != x; }
PTX_INLINE bool is_subnormal_value(f32 x) { return x != 0 && std::fabs(x) < 0x1p-126f; }
PTX_INLINE bool is_subnormal_value(f64 x) { return x != 0 && std::fabs(x) < 0x1p-1022; }
template <typename T>
PTX_INLINE bool is_normal_value(T x) { return is_finite_value(x) && x != 0 && !is_subnormal_value(x); }

// A comparison that ends in u also holds if an operand is NaN; the others do not.
#define PTX_COMPARISON(name, operation)                                                       \
  template <typename T>                                                                       \
  PTX_INLINE bool compare_##name(T a, T b) {                                                  \
    if constexpr (std::is_arithmetic_v<T>)                                                    \
      return a operation b;                                                                   \
    else                                                                                      \
      return widened(a) operation widened(b);                                                 \
  }                                                                                           \
  template <typename T>                                                                       \
  PTX_INLINE bool compare_##name##u(T a, T b) {                                               \
    if constexpr (std::is_arithmetic_v<T>)                                                    \
      return a != a || b != b || a operation b;                                               \
    else                                                                                      \
      return compare_##name##u(widened(a), widened(b));                                       \
  }
PTX_COMPARISON(eq, ==)
PTX_COMPARISON(lt, <)
PTX_COMPARISON(le, <=)
PTX_COMPARISON(gt, >)
PTX_COMPARISON(ge, >=)
#undef PTX_COMPARISON
template <typename T>
PTX_INLINE bool compare_ne(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a != b;
  else
    return widened(a) < widened(b) || widened(a) > widened(b);
}
PTX_INLINE bool compare_ne(f64 a, f64 b) { return a < b || a > b; }
PTX_INLINE f64 widened(f64 x) { return x; }
template <typename T>
PTX_INLINE bool compare_neu(T a, T b) { return !(widened(a) == widened(b)); }
template <typename T>
PTX_INLINE bool compare_num(T a, T b) { return widened(a) == widened(a) && widened(b) == widened(b); }
template <typename T>
PTX_INLINE bool compare_nan(T a, T b) { return !compare_num(a, b); }

struct Both {
  bool low, high;
};
#define PTX_PAIR(name)                                                                           \
  template <typename Half>                                                                       \
  PTX_INLINE Both compare_pair_##name(Pair<Half> a, Pair<Half> b) {                              \
    return {compare_##name(a.low, b.low), compare_##name(a.high, b.high)};                       \
  }
PTX_PAIR(eq) PTX_PAIR(ne) PTX_PAIR(lt) PTX_PAIR(le) PTX_PAIR(gt) PTX_PAIR(ge) PTX_PAIR(equ) PTX_PAIR(neu)
PTX_PAIR(ltu) PTX_PAIR(leu) PTX_PAIR(gtu) PTX_PAIR(geu) PTX_PAIR(num) PTX_PAIR(nan)
#undef PTX_PAIR
template <typename Half>
PTX_INLINE Half one_if(bool holds) { return rounded<Half>(holds ? 1.0f : 0.0f); }
template <typename Half = f16>
PTX_INLINE Pair<Half> set_pair(Both holds) { return {one_if<Half>(holds.low), one_if<Half>(holds.high)}; }
PTX_INLINE u32 pair_mask(Both holds) { return (holds.low ? 0xFFFFU : 0) | (holds.high ? 0xFFFF0000U : 0); }

// Rounding modes of PTX: to nearest even, to nearest away from zero, toward zero, down, up.
enum class Rounding { rn, rna, rz, rm, rp };
struct rn_t { static constexpr unsigned control = 0x0000; };
struct rm_t { static constexpr unsigned control = 0x2000; };
struct rp_t { static constexpr unsigned control = 0x4000; };
struct rz_t { static constexpr unsigned control = 0x6000; };
typedef rn_t rn;
typedef rm_t rm;
typedef rp_t rp;
typedef rz_t rz;

// Evaluates an operation with the CPU's rounding mode set. The operands pass through memory that the compiler cannot
// see through, so that it neither computes the operation before nor moves it behind.
template <typename Mode, typename T, typename Operation>
__attribute__((noinline)) T with_rounding(T a, T b, T c, Operation operation) {
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr((before & ~0x6000U) | Mode::control);
  asm volatile("" : "+x"(a), "+x"(b), "+x"(c)::"memory");
  auto result = operation(a, b, c);
  asm volatile("" : "+x"(result)::"memory");
  __builtin_ia32_ldmxcsr(before);
  return static_cast<T>(result);
}
template <typename Mode, typename T>
PTX_INLINE T directed_add(T a, T b) { return with_rounding<Mode>(a, b, T{}, [](T x, T y, T) { return x + y; }); }
template <typename Mode, typename T>
PTX_INLINE T directed_sub(T a, T b) { return with_rounding<Mode>(a, b, T{}, [](T x, T y, T) { return x - y; }); }
template <typename Mode, typename T>
PTX_INLINE T directed_mul(T a, T b) { return with_rounding<Mode>(a, b, T{}, [](T x, T y, T) { return x * y; }); }
template <typename Mode, typename T>
PTX_INLINE T directed_div(T a, T b) { return with_rounding<Mode>(a, b, T{}, [](T x, T y, T) { return x / y; }); }
template <typename Mode, typename T>
PTX_INLINE T directed_fma(T a, T b, T c) {
  return with_rounding<Mode>(a, b, c, [](T x, T y, T z) {
    if constexpr (sizeof(T) == 4) return __builtin_fmaf(x, y, z);
    else return __builtin_fma(x, y, z);
  });
}
template <typename Mode, typename T>
PTX_INLINE T directed_sqrt(T a) {
  return with_rounding<Mode>(a, T{}, T{}, [](T x, T, T) {
    if constexpr (sizeof(T) == 4) return __builtin_sqrtf(x);
    else return __builtin_sqrt(x);
  });
}

PTX_INLINE f32 approximate_rcp(f32 x) { return static_cast<f32>(1.0 / static_cast<f64>(x)); }
PTX_INLINE f32 approximate_sqrt(f32 x) { return __builtin_sqrtf(x); }
PTX_INLINE f32 approximate_rsqrt(f32 x) { return static_cast<f32>(1.0 / __builtin_sqrt(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_lg2(f32 x) { return static_cast<f32>(std::log2(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_ex2(f32 x) { return static_cast<f32>(std::exp2(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_sin(f32 x) { return static_cast<f32>(std::sin(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_cos(f32 x) { return static_cast<f32>(std::cos(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_tanh(f32 x) { return static_cast<f32>(std::tanh(static_cast<f64>(x))); }
PTX_INLINE f32 approximate_full_div(f32 a, f32 b) { return a / b; }
// div.approx gives 0 for divisors of 2^126 and more, and NaN for infinity by them (PTX ISA, div).
PTX_INLINE f32 approximate_approx_div(f32 a, f32 b) {
  if (__builtin_fabsf(b) > 0x1p+126f && __builtin_fabsf(b) < INFINITY) return a * 0.0f;
  return a / b;
}
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write the upper words only.
PTX_INLINE f64 coarse_word(f64 x) { return as_f64(bits(x) >> 32 << 32); }
PTX_INLINE f64 coarse_rcp(f64 x) { return coarse_word(1.0 / coarse_word(x)); }
PTX_INLINE f64 coarse_rsqrt(f64 x) { return coarse_word(1.0 / __builtin_sqrt(coarse_word(x))); }

}  // namespace ptx
