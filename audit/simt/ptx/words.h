// The types of PTX, and their bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../include/simt_minifloat.h"

#define PTX_INLINE inline __attribute__((always_inline))

namespace ptx {

typedef std::uint8_t u8;
typedef std::uint16_t u16;
typedef std::uint32_t u32;
typedef std::uint64_t u64;
typedef unsigned __int128 u128;
typedef std::int8_t s8;
typedef std::int16_t s16;
typedef std::int32_t s32;
typedef std::int64_t s64;
typedef __int128 s128;
typedef float f32;
typedef double f64;

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
template <typename Half>
struct Pair {
  Half low, high;
};
typedef Pair<f16> f16x2;
typedef Pair<bf16> bf16x2;
typedef f16 half_of_f16x2;
typedef bf16 half_of_bf16x2;

// An access that must be aligned to more than its own size, as a vector's is. The build checks it.
template <typename T, unsigned Bytes>
struct AlignedOf {
  typedef T type __attribute__((aligned(Bytes)));
};
template <typename T, unsigned Bytes>
using Aligned = typename AlignedOf<T, Bytes>::type;

PTX_INLINE f32 as_f32(u32 x) { return __builtin_bit_cast(f32, x); }
PTX_INLINE f64 as_f64(u64 x) { return __builtin_bit_cast(f64, x); }
PTX_INLINE f16 as_f16(u16 x) { return {x}; }
PTX_INLINE bf16 as_bf16(u16 x) { return {x}; }
PTX_INLINE f16x2 as_f16x2(u32 x) { return {{static_cast<u16>(x)}, {static_cast<u16>(x >> 16)}}; }
PTX_INLINE bf16x2 as_bf16x2(u32 x) { return {{static_cast<u16>(x)}, {static_cast<u16>(x >> 16)}}; }

PTX_INLINE u32 bits(f32 x) { return __builtin_bit_cast(u32, x); }
PTX_INLINE u64 bits(f64 x) { return __builtin_bit_cast(u64, x); }
PTX_INLINE u16 bits(f16 x) { return x.bits; }
PTX_INLINE u16 bits(bf16 x) { return x.bits; }
template <typename Half>
PTX_INLINE u32 bits(Pair<Half> x) {
  return static_cast<u32>(x.high.bits) << 16 | x.low.bits;
}
PTX_INLINE u8 bits(u8 x) { return x; }
PTX_INLINE u16 bits(u16 x) { return x; }
PTX_INLINE u32 bits(u32 x) { return x; }
PTX_INLINE u64 bits(u64 x) { return x; }
PTX_INLINE u32 bits(s32 x) { return static_cast<u32>(x); }
PTX_INLINE u64 bits(s64 x) { return static_cast<u64>(x); }

template <typename Half>
PTX_INLINE Half low(Pair<Half> x) {
  return x.low;
}
template <typename Half>
PTX_INLINE Half high(Pair<Half> x) {
  return x.high;
}
template <typename Half>
PTX_INLINE Pair<Half> joined(Half low_half, Half high_half) {
  return {low_half, high_half};
}

// A function of the low and of the high halves.
template <typename Half, typename Function>
PTX_INLINE Pair<Half> each(Pair<Half> a, Function f) {
  return {f(a.low), f(a.high)};
}
template <typename Half, typename Function>
PTX_INLINE Pair<Half> each(Pair<Half> a, Pair<Half> b, Function f) {
  return {f(a.low, b.low), f(a.high, b.high)};
}
template <typename Half, typename Function>
PTX_INLINE Pair<Half> each(Pair<Half> a, Pair<Half> b, Pair<Half> c, Function f) {
  return {f(a.low, b.low, c.low), f(a.high, b.high, c.high)};
}

// Modifiers that a table of instructions passes as names.
constexpr bool is_ = false, is_NaN = true, is_xorsign_abs = true, is_shiftamt = true, is_relu = true, is_noinc = true, is_hi = true, is_lo = false;
}  // namespace ptx
