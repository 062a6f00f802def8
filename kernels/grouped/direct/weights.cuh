// From the scores of one tile to its weights: P and R as A fragments of PV, the sum of each row, and its rescale.
//
// Two steps give the contract's result by other means:
// - A row whose sum is 0 has out = sum = +0, and +0 times any finite factor is +0: its rescale need not be 1.
// - A tile that a row does not see adds nothing by itself: maximum -1e30, p = +0, rescale exp(0) = 1.
#pragma once
#include "operands.cuh"

namespace grouped::direct {

// paged::weight_of with the max() of scores.cuh: x - greatest is not NaN.
__device__ __forceinline__ float weight_of(float x, float greatest) {
  return paged::contract_exp(max(x - greatest, paged::kExpFloor));
}

// The tree over a row's 32 columns: o = 16 and 8 within a lane, 4 and 2 over the four lanes of the row, 1 within the
// lane again. Addition commutes, so exchanging gives all four lanes what shuffling down gives the first.
__device__ __forceinline__ float sum_row(const float (&p)[4][4], int half) {
  float pair[2];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int i = 2 * half + e;
    pair[e] = (p[0][i] + p[2][i]) + (p[1][i] + p[3][i]);
    pair[e] += __shfl_xor_sync(paged::kAllLanes, pair[e], 2);
    pair[e] += __shfl_xor_sync(paged::kAllLanes, pair[e], 1);
  }
  return pair[0] + pair[1];
}

// The tile of one warp. p holds the scores on entry. P = half(p) and R = half((p - P) * 2^11).
template <int Halves>
__device__ __forceinline__ void store_weights(ChunkWeights& weights, int warp, float (&p)[4][4],
                                              const float (&tile_max)[Halves], const float (&before)[Halves],
                                              bool masked, const int (&visible)[Halves]) {
  const int lane = threadIdx.x % 32;
  float greatest[Halves];
#pragma unroll
  for (int half = 0; half < Halves; ++half) greatest[half] = max(before[half], tile_max[half]);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) p[j][e] = weight_of(p[j][e], greatest[e / 2]);
  }
  if (masked) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 2 * Halves; ++e) {
        if (8 * j + 2 * (lane % 4) + e % 2 >= visible[e / 2]) p[j][e] = 0.0f;
      }
    }
  }
  const float first_sum = sum_row(p, 0);
  const float last_sum = Halves == 2 ? sum_row(p, Halves - 1) : first_sum;
  const int half = lane % 4;  // all four lanes of a row have its sums: lane `half` writes those of that half
  if (half < Halves) {
    weights.tile_sum[lane / 4 + 8 * half][warp] = half == 0 ? first_sum : last_sum;
    weights.tiles[warp].rescale[lane / 4 + 8 * half] =
        half == 0 ? weight_of(before[0], greatest[0]) : weight_of(before[Halves - 1], greatest[Halves - 1]);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    unsigned rounded[4] = {};
    unsigned rest[4] = {};
#pragma unroll
    for (int register_ = 0; register_ < 4; ++register_) {
      if (register_ % 2 >= Halves) continue;
      const float* const pair = &p[2 * i + register_ / 2][2 * (register_ % 2)];
      const __half2 halves = __floats2half2_rn(pair[0], pair[1]);
      const float2 back = __half22float2(halves);
      rounded[register_] = bits_of(halves);
      rest[register_] = bits_of(__floats2half2_rn((pair[0] - back.x) * 2048.0f, (pair[1] - back.y) * 2048.0f));
    }
    weights.tiles[warp].p[i][lane] = make_uint4(rounded[0], rounded[1], rounded[2], rounded[3]);
    weights.tiles[warp].r[i][lane] = make_uint4(rest[0], rest[1], rest[2], rest[3]);
  }
}

}  // namespace grouped::direct
