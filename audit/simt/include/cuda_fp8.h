// CUDA's 8-bit floats: e4m3 (no infinity, NaN 0x7F and 0xFF) and e5m2 (the upper byte of a half).
#pragma once

#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  const unsigned sign = (x & 0x80U) << 8, rest = x & 0x7FU;
  if (format == __NV_E5M2)
    return {static_cast<unsigned short>(rest > 0x7C ? simt::kHalfNan : sign | rest << 8)};
  if (rest == 0x7F) return {simt::kHalfNan};
  // The shifted bits are the number times 2^-8, subnormals included.
  const float value = simt::float_from_half(static_cast<unsigned short>(rest << 7)) * 256.0f;
  return {static_cast<unsigned short>(sign | simt::half_from_float(value))};
}

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t format) {
  const bool e4m3 = format == __NV_E4M3;
  if (x != x) return e4m3 ? 0x7F : 0x7E;
  const unsigned largest = e4m3 ? 0x7E : 0x7B;
  unsigned code = simt::minifloat_code(fabs(x), e4m3 ? 3 : 2, e4m3 ? -6 : -14, largest, false);
  if (code > largest && saturation == __NV_SATFINITE) code = largest;
  return static_cast<__nv_fp8_storage_t>((signbit(x) ? 0x80U : 0U) | code);
}

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                __nv_fp8_interpretation_t format) {
  return __nv_cvt_double_to_fp8(static_cast<double>(x), saturation, format);
}

inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(simt::float_from_half(x.x), saturation, format);
}

inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t format) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x & 0xFF), format).x,
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x >> 8), format).x};
}

inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t format) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(v.x, saturation, format) |
                                           __nv_cvt_float_to_fp8(v.y, saturation, format) << 8);
}

namespace simt {

template <__nv_fp8_interpretation_t Format>
struct Fp8 {
  __nv_fp8_storage_t __x;

  Fp8() = default;
  explicit Fp8(float value) : __x(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, Format)) {}
  explicit Fp8(double value) : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, Format)) {}
  explicit Fp8(__half value) : __x(__nv_cvt_halfraw_to_fp8(value, __NV_SATFINITE, Format)) {}
  explicit operator float() const { return float_from_half(__nv_cvt_fp8_to_halfraw(__x, Format).x); }
  explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, Format); }
};

}  // namespace simt

using __nv_fp8_e4m3 = simt::Fp8<__NV_E4M3>;
using __nv_fp8_e5m2 = simt::Fp8<__NV_E5M2>;
