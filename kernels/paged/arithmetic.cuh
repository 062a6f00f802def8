// The scalar operations of kernels/CONTRACT.md that both operators use. Compile without contraction: only __fmaf_rn is
// a fused multiply-add.
#pragma once

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

// exp(max(x - greatest, -80)): the weight that belongs to a score, or to a maximum, x.
__device__ __forceinline__ float weight_of(float x, float greatest) {
  return contract_exp(max_of(x - greatest, kExpFloor));
}

}  // namespace paged
