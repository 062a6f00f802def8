// Arithmetic intrinsics.
//
// Functions that IEEE 754 defines return a GPU's bytes, except for the bits of NaN results. Functions that CUDA only
// approximates (expf, __expf, __logf, rsqrtf, __fdividef, ...) use the C library: accurate, but not the GPU's bytes.
// Results that C++ leaves undefined differ between the machines: 1u << 32 is 1 here and 0 on a GPU, and (int)1e10f is
// INT_MIN here and INT_MAX on a GPU (__float2int_rz is the same on both).
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../device.h"

namespace simt {

template <typename To, typename From>
inline To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To result;
  __builtin_memcpy(&result, &value, sizeof(result));
  return result;
}

}  // namespace simt

inline unsigned int __float_as_uint(float x) { return simt::bit_cast<unsigned int>(x); }
inline int __float_as_int(float x) { return simt::bit_cast<int>(x); }
inline float __uint_as_float(unsigned int x) { return simt::bit_cast<float>(x); }
inline float __int_as_float(int x) { return simt::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return simt::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return simt::bit_cast<double>(x); }

namespace simt {

// A value that no compiler may fuse with what comes before or after: the _rn functions are never contracted on a GPU.
template <typename T>
inline T apart(T value) {
#if defined(SIMT_CONTRACT) && defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(SIMT_CONTRACT) && defined(__aarch64__)
  asm("" : "+w"(value));
#elif defined(SIMT_CONTRACT)
  volatile T kept = value;
  value = kept;
#endif
  return value;
}

}  // namespace simt

inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return simt::apart(a) + simt::apart(b); }
inline float __fsub_rn(float a, float b) { return simt::apart(a) - simt::apart(b); }
inline float __fmul_rn(float a, float b) { return simt::apart(a * b); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return simt::apart(a) + simt::apart(b); }
inline double __dsub_rn(double a, double b) { return simt::apart(a) - simt::apart(b); }
inline double __dmul_rn(double a, double b) { return simt::apart(a * b); }
inline double __ddiv_rn(double a, double b) { return a / b; }

// Conversions to integers saturate and convert NaN to 0, like cvt.
inline int __double2int_rn(double x) {
  if (x != x) return 0;
  if (x >= 2147483647.0) return 2147483647;
  return x <= -2147483648.0 ? -2147483647 - 1 : static_cast<int>(nearbyint(x));
}
inline int __float2int_rn(float x) { return __double2int_rn(x); }
inline int __float2int_rz(float x) { return __double2int_rn(trunc(static_cast<double>(x))); }
inline int __float2int_rd(float x) { return __double2int_rn(floor(static_cast<double>(x))); }
inline int __float2int_ru(float x) { return __double2int_rn(ceil(static_cast<double>(x))); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned int __brev(unsigned int x) {
  unsigned int reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1U) << (31 - i);
  return reversed;
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned int>(bytes >> (selector >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return result;
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

template <typename T>
inline T __ldg(const T* p, const char* simt_file = __builtin_FILE(), int simt_line = __builtin_LINE()) {
  static_cast<void>(&simt::loads_read_only<T>);
  simt::read_only_load(p, sizeof(T), {simt_file, simt_line});
  return *p;
}
template <typename T> inline T __ldcg(const T* p) { return *p; }
template <typename T> inline T __ldca(const T* p) { return *p; }
template <typename T> inline T __ldlu(const T* p) { return *p; }
template <typename T> inline T __ldcv(const T* p) { return *p; }
template <typename T> inline T __ldcs(const T* p) { return *p; }
template <typename T> inline void __stcg(T* p, T value) { *p = value; }
template <typename T> inline void __stwb(T* p, T value) { *p = value; }
template <typename T> inline void __stwt(T* p, T value) { *p = value; }
template <typename T> inline void __stcs(T* p, T value) { *p = value; }

#define SIMT_MIN_MAX(T, A, B)                                                                      \
  inline T min(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); } \
  inline T max(A a, B b) { return static_cast<T>(a) > static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); }

SIMT_MIN_MAX(int, int, int)
SIMT_MIN_MAX(unsigned int, unsigned int, unsigned int)
SIMT_MIN_MAX(unsigned int, unsigned int, int)
SIMT_MIN_MAX(unsigned int, int, unsigned int)
SIMT_MIN_MAX(long, long, long)
SIMT_MIN_MAX(unsigned long, unsigned long, unsigned long)
SIMT_MIN_MAX(long long, long long, long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)

#undef SIMT_MIN_MAX

// fmaxf, fminf, fmax and fmin are the runtime's own (device_math.cc), with PTX's order of -0 and +0.
inline float max(float a, float b) { return fmaxf(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(static_cast<double>(a), b); }
inline double max(double a, float b) { return fmax(a, static_cast<double>(b)); }
inline double min(float a, double b) { return fmin(static_cast<double>(a), b); }
inline double min(double a, float b) { return fmin(a, static_cast<double>(b)); }

inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
// The C library declares these names as noexcept without defining them for others.
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp10f(float x) noexcept { return powf(10.0f, x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
