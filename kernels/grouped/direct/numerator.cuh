// The numerator of the direct family: PV's accumulators, of which each warp holds slices of 32 dimensions.
#pragma once
#include "operands.cuh"

namespace grouped::direct {

template <int D>
constexpr int slices_of_warp = D / 32 > kWarps ? D / 32 / kWarps : 1;

template <int D>
using Numerator = float[slices_of_warp<D>][4][4];

// tile += P V, then R V', for 16 tokens of one slice.
__device__ __forceinline__ void multiply_values(float (&tile)[4][4], const unsigned (&p)[4], const unsigned (&r)[4],
                                                const unsigned (&values)[4][2]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) audit::product_m16n8k16(tile[j], p, values[j], tile[j]);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const unsigned shrunk[2] = {shrink_pair(values[j][0]), shrink_pair(values[j][1])};
    audit::product_m16n8k16(tile[j], r, shrunk, tile[j]);
  }
}

// out = fma(out, rescale, tile) for one slice. `rescale` points to the factor of row g; that of row g + 8 is behind it.
template <int Halves>
__device__ __forceinline__ void rescale_and_add(float (&out)[4][4], const float (&tile)[4][4], const float* rescale) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) {
      out[j][e] = __fmaf_rn(out[j][e], rescale[8 * (e / 2)], tile[j][e]);
    }
  }
}

// The epilogue: out * v_scale to partial, whose first slot of this row tile is partial_row. -0 is never stored.
// Transposed: V came by load_transposed_values.
template <int D, int Halves, bool Transposed>
__device__ __forceinline__ void store_numerator(const Numerator<D>& out, int warp, float v_scale, int slots,
                                                float* partial_row) {
  const int lane = threadIdx.x % 32;
  const int first_slice = warp * slices_of_warp<D>;
  if (first_slice * 32 >= D) return;
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = lane / 4 + 8 * half;
    if (slot >= slots) continue;
#pragma unroll
    for (int slice = 0; slice < slices_of_warp<D>; ++slice) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float value[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float numerator =
              (Transposed ? out[slice][2 * e + j % 2][2 * half + j / 2] : out[slice][j][2 * half + e]) * v_scale;
          value[j] = numerator + 0.0f;
        }
        const int d = 32 * (first_slice + slice) + (Transposed ? 16 * e + 4 * (lane % 4) : 8 * (lane % 4) + 4 * e);
        *reinterpret_cast<float4*>(partial_row + slot * D + d) = make_float4(value[0], value[1], value[2], value[3]);
      }
    }
  }
}

}  // namespace grouped::direct
