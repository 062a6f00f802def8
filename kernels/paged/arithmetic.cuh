// The scalar operations of kernels/CONTRACT.md that both operators use. Compile without contraction: only
// __fmaf_rn is a fused multiply-add.
#pragma once
#include <cuda_fp16.h>

namespace paged {

constexpr float kNothing = -1e30f;      // 0xF149F2CA: the maximum of a row that has seen no token
constexpr float kSeenNothing = -1e20f;  // 0xE0AD78EC: a maximum up to here belongs to such a row
constexpr float kExpFloor = -80.0f;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Not fmaxf, which would hide a NaN and may return either of two zeros.
__device__ __forceinline__ float max_of(float a, float b) { return a > b ? a : b; }

// exp(x) for x in [-80, 0], at most 0.9035 ulp off (kernels/paged/exp_sweep.py measures it on every input).
__device__ __forceinline__ float contract_exp(float x) {
  constexpr float log2_e = 0x1.715476p+0f;
  constexpr float ln2_high = 0x1.62e430p-1f;
  constexpr float ln2_low = -0x1.05c610p-29f;
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = __fmaf_rn(x, log2_e, shift);
  const float n = shifted - shift;
  const float r = __fmaf_rn(n, -ln2_low, __fmaf_rn(n, -ln2_high, x));
  constexpr float coefficients[] = {0x1.122f28p-7f, 0x1.55568ap-5f, 0x1.5554a4p-3f, 0.5f, 1.0f, 1.0f};
  float polynomial = 0x1.6b6bf8p-10f;
#pragma unroll
  for (int i = 0; i < 6; ++i) polynomial = __fmaf_rn(polynomial, r, coefficients[i]);
  return __uint_as_float(__float_as_uint(polynomial) + (__float_as_uint(shifted) << 23));  // times 2^n
}

// exp(max(x - greatest, -80)): the weight of something whose maximum or score is x.
__device__ __forceinline__ float weight_of(float x, float greatest) {
  return contract_exp(max_of(x - greatest, kExpFloor));
}

// x[i] += x[i + o] for i < o, o = 16, 8, 4, 2, 1, and x[0] to every lane. Whole warps only.
__device__ __forceinline__ float sum_tree(float x) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) x += __shfl_down_sync(kAllLanes, x, o);
  return __shfl_sync(kAllLanes, x, 0);
}

// The same tree of max_of.
__device__ __forceinline__ float max_tree(float x) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) x = max_of(x, __shfl_down_sync(kAllLanes, x, o));
  return __shfl_sync(kAllLanes, x, 0);
}

// e4m3fn to f16, exactly. The shifted bits are the number times 2^-8, subnormals included.
__device__ __forceinline__ __half decode_e4m3(unsigned char byte) {
  const unsigned sign = (byte & 0x80u) << 8;
  const unsigned magnitude = byte & 0x7Fu;
  if (magnitude == 0x7Fu) return __ushort_as_half(static_cast<unsigned short>(sign | 0x7E00u));
  const __half scaled = __ushort_as_half(static_cast<unsigned short>(sign | (magnitude << 7)));
  return __float2half_rn(__half2float(scaled) * 256.0f);
}

}  // namespace paged
