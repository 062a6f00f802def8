// Integer instructions that are no C++ operator, as chapter 9.7.1 of the PTX ISA defines them.
#pragma once

#include "words.h"

namespace ptx {

constexpr bool is_signed_s32 = true, is_signed_u32 = false;

PTX_INLINE s32 clamped(s64 x) {
  return static_cast<s32>(x > 2147483647LL ? 2147483647LL : x < -2147483648LL ? -2147483648LL : x);
}

// Division by zero is not defined by the PTX ISA; an H200 gives all ones, and the dividend as the remainder.
template <typename T>
PTX_INLINE T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - a);
  return static_cast<T>(a / b);
}
template <typename T>
PTX_INLINE T remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}

PTX_INLINE s32 integer_min_relu(s32 a, s32 b) { return (a < b ? a : b) < 0 ? 0 : a < b ? a : b; }
PTX_INLINE s32 integer_max_relu(s32 a, s32 b) { return (a > b ? a : b) < 0 ? 0 : a > b ? a : b; }

typedef u16 u16x2;
typedef s16 s16x2;
template <typename T>
PTX_INLINE u32 pairwise_min(u32 a, u32 b) {
  const T low_a = static_cast<T>(a), low_b = static_cast<T>(b), high_a = static_cast<T>(a >> 16), high_b = static_cast<T>(b >> 16);
  return static_cast<u32>(static_cast<u16>(low_a < low_b ? low_a : low_b)) |
         static_cast<u32>(static_cast<u16>(high_a < high_b ? high_a : high_b)) << 16;
}
template <typename T>
PTX_INLINE u32 pairwise_max(u32 a, u32 b) {
  const T low_a = static_cast<T>(a), low_b = static_cast<T>(b), high_a = static_cast<T>(a >> 16), high_b = static_cast<T>(b >> 16);
  return static_cast<u32>(static_cast<u16>(low_a > low_b ? low_a : low_b)) |
         static_cast<u32>(static_cast<u16>(high_a > high_b ? high_a : high_b)) << 16;
}
PTX_INLINE u32 pairwise_add(u32 a, u32 b) {
  return ((a + b) & 0xFFFF) | (((a >> 16) + (b >> 16)) << 16);
}

// Bit 4a + 2b + c of the table is the result for the bits a, b and c.
PTX_INLINE u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  if (table & 1) result |= ~a & ~b & ~c;
  if (table & 2) result |= ~a & ~b & c;
  if (table & 4) result |= ~a & b & ~c;
  if (table & 8) result |= ~a & b & c;
  if (table & 16) result |= a & ~b & ~c;
  if (table & 32) result |= a & ~b & c;
  if (table & 64) result |= a & b & ~c;
  if (table & 128) result |= a & b & c;
  return result;
}

// A shift by the width or more shifts all bits out.
template <typename T>
PTX_INLINE T shifted_left(T a, u32 by) {
  constexpr u32 width = 8 * sizeof(T);
  return by >= width ? T{0} : static_cast<T>(a << (by & (width - 1)));
}
template <typename T>
PTX_INLINE T shifted_right(T a, u32 by) {
  constexpr u32 width = 8 * sizeof(T);
  if (by < width) return static_cast<T>(a >> (by & (width - 1)));
  return a < 0 ? static_cast<T>(-1) : T{0};
}
typedef u16 b16;
typedef u32 b32;
typedef u64 b64;

PTX_INLINE u32 clamp_shift(u32 by) { return by > 32 ? 32 : by; }
PTX_INLINE u32 wrap_shift(u32 by) { return by & 31; }
PTX_INLINE u32 funnel_l(u32 low_word, u32 high_word, u32 by) {
  return static_cast<u32>(((static_cast<u64>(high_word) << 32 | low_word) << by) >> 32);
}
PTX_INLINE u32 funnel_r(u32 low_word, u32 high_word, u32 by) {
  return static_cast<u32>((static_cast<u64>(high_word) << 32 | low_word) >> by);
}

template <typename T>
PTX_INLINE T reversed(T x) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (x >> i & 1));
  return result;
}

// The most significant bit that differs from the sign; all ones if there is none.
template <typename T>
PTX_INLINE u32 leading(T x, bool as_shift) {
  typedef std::make_unsigned_t<T> U;
  const U plain = static_cast<U>(x < 0 ? ~x : x);
  if (plain == 0) return ~0U;
  const u32 at = 63U - static_cast<u32>(__builtin_clzll(plain));
  return as_shift ? 8 * sizeof(T) - 1 - at : at;
}

template <typename T>
PTX_INLINE T extracted(T a, u32 position, u32 length) {
  typedef std::make_unsigned_t<T> U;
  constexpr u32 top = 8 * sizeof(T) - 1;
  position &= 255;
  length &= 255;
  const U word = static_cast<U>(a);
  const u32 last = position + length - 1 < top ? position + length - 1 : top;
  const bool sign = length != 0 && std::is_signed_v<T> && (word >> last & 1) != 0;
  U result = position > top ? 0 : static_cast<U>(word >> position);
  if (length == 0) return 0;
  if (position > top) return sign ? static_cast<T>(-1) : T{0};
  if (length <= top) {
    const U field = (U{1} << length) - 1;
    const u32 held = top - position + 1 < length ? top - position + 1 : length;
    result &= field;
    if (sign && held <= top) result |= ~((U{1} << held) - 1);
  } else if (sign && position > 0) {
    result |= ~((U{1} << (top - position + 1)) - 1);
  }
  return static_cast<T>(result);
}

template <typename T>
PTX_INLINE T inserted(T field, T into, u32 position, u32 length) {
  constexpr u32 width = 8 * sizeof(T);
  position &= 255;
  length &= 255;
  if (position >= width || length == 0) return into;
  const T ones = length >= width ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((into & ~mask) | ((field << position) & mask));
}

PTX_INLINE u32 bit_mask_clamp(u32 from, u32 length) {
  if (from > 31 || length == 0) return 0;
  const u64 ones = length > 32 ? 0xFFFFFFFFULL : (1ULL << length) - 1;
  return static_cast<u32>(ones << from);
}
PTX_INLINE u32 bit_mask_wrap(u32 from, u32 length) { return bit_mask_clamp(from & 31, length & 31); }

template <typename T>
PTX_INLINE T extended_wrap(T a, u32 length) {
  length &= 31;
  if (length == 0) return 0;
  return static_cast<T>(static_cast<T>(static_cast<u32>(a) << (32 - length)) >> (32 - length));
}
template <typename T>
PTX_INLINE T extended_clamp(T a, u32 length) {
  return length >= 32 ? a : extended_wrap(a, length);
}

// The position of the n-th set bit from `base` upward (n > 0) or downward (n < 0); base itself counts as the first.
PTX_INLINE u32 nth_set(u32 mask, u32 base, s32 n) {
  const s32 step = n < 0 ? -1 : 1;
  if (n == 0) return mask >> (base & 31) & 1 ? base : ~0U;
  s32 left = n < 0 ? -n : n;
  for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<u32>(at);
  return ~0U;
}

PTX_INLINE u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const u32 choice = selector >> 4 * i & 15;
    u32 byte = static_cast<u32>(bytes >> 8 * (choice & 7)) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
PTX_INLINE u32 permuted_f4e(u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(b) << 32 | a) >> 8 * (c & 3)); }
PTX_INLINE u32 permuted_b4e(u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= permuted(a, b, ((c & 3) + 8 - i) & 7) << 24 >> 24 << 8 * i;
  return result;
}
PTX_INLINE u32 permuted_rc8(u32 a, u32, u32 c) { return (a >> 8 * (c & 3) & 255) * 0x01010101U; }
PTX_INLINE u32 permuted_ecl(u32 a, u32 b, u32 c) {
  u32 selector = 0;
  for (u32 i = 0; i < 4; ++i) selector |= (i < (c & 3) ? (c & 3) : i) << 4 * i;
  return permuted(a, b, selector);
}
PTX_INLINE u32 permuted_ecr(u32 a, u32 b, u32 c) {
  u32 selector = 0;
  for (u32 i = 0; i < 4; ++i) selector |= (i > (c & 3) ? (c & 3) : i) << 4 * i;
  return permuted(a, b, selector);
}
PTX_INLINE u32 permuted_rc16(u32 a, u32, u32 c) { return (a >> 16 * (c & 1) & 0xFFFF) * 0x00010001U; }

template <bool SignedA, bool SignedB>
PTX_INLINE s32 dot4(u32 a, u32 b, s32 c) {
  u32 sum = static_cast<u32>(c);
  for (unsigned i = 0; i < 4; ++i) {
    const s32 x = SignedA ? static_cast<s8>(a >> 8 * i) : static_cast<s32>(a >> 8 * i & 255);
    const s32 y = SignedB ? static_cast<s8>(b >> 8 * i) : static_cast<s32>(b >> 8 * i & 255);
    sum += static_cast<u32>(x * y);
  }
  return static_cast<s32>(sum);
}
template <bool SignedA, bool SignedB>
PTX_INLINE s32 dot2(u32 a, u32 b, s32 c) {
  u32 sum = static_cast<u32>(c);
  for (unsigned i = 0; i < 2; ++i) {
    const s32 x = SignedA ? static_cast<s16>(a >> 16 * i) : static_cast<s32>(a >> 16 * i & 0xFFFF);
    const s32 y = SignedB ? static_cast<s8>(b >> 8 * i) : static_cast<s32>(b >> 8 * i & 255);
    sum += static_cast<u32>(x * y);
  }
  return static_cast<s32>(sum);
}

template <typename T>
PTX_INLINE bool compare_lo(T a, T b) { return a < b; }
template <typename T>
PTX_INLINE bool compare_ls(T a, T b) { return a <= b; }
template <typename T>
PTX_INLINE bool compare_hi(T a, T b) { return a > b; }
template <typename T>
PTX_INLINE bool compare_hs(T a, T b) { return a >= b; }

PTX_INLINE u32 all_ones(bool holds) { return holds ? ~0U : 0; }

}  // namespace ptx
