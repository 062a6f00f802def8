// Scores of one tile in the accumulators' layout: the compensated sum of QK, the mask, and the maxima of the rows.
//
// Lane (g, t) holds, for each 8-row half h of the row tile, slot g + 8h at the tile's columns 8j + 2t and 8j + 2t + 1.
#pragma once
#include "chunk.cuh"

namespace grouped::direct {

// The sum of `Steps` products, of which t is number `step`. The first gives s = t and c = 0, since t is never -0;
// the second has y = t; the last c is dropped.
template <int Steps>
__device__ __forceinline__ void kahan_add(float& sum, float& compensation, float t, int step) {
  if (step == 0) {
    sum = t;
    return;
  }
  const float y = step == 1 ? t : t - compensation;
  const float next = sum + y;
  if (step < Steps - 1) compensation = (next - sum) - y;
  sum = next;
}

// max(), here and below, equals the contract's: no score is NaN or -0, so the order of the operands does not show. (A
// sum of products starts at +0 and a zero sum is +0; its least multiple is 2^-33 and scale * k_scale >= 2^-60, so that
// nothing underflows to -0.)
__device__ __forceinline__ float max_row(const float (&score)[4][4], int half) {
  const int i = 2 * half;
  float greatest = max(score[0][i], score[0][i + 1]);
#pragma unroll
  for (int j = 1; j < 4; ++j) greatest = max(greatest, max(score[j][i], score[j][i + 1]));
  greatest = max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 2));
  return max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 1));
}

// Scales the scores of one warp's tile and sets those that a row does not see to -1e30. `visible` is the number of
// columns that the row of each half sees; it is read only if `masked`. The rows' maxima go to shared memory, for the
// tiles behind this one.
template <int Halves>
__device__ __forceinline__ void scale_scores(TileValues& maxima, int warp, float (&score)[4][4],
                                             float (&tile_max)[Halves], float score_scale, bool masked,
                                             const int (&visible)[Halves]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) score[j][e] *= score_scale;
  }
  if (masked) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 2 * Halves; ++e) {
        if (8 * j + 2 * (lane % 4) + e % 2 >= visible[e / 2]) score[j][e] = paged::kNothing;
      }
    }
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    tile_max[half] = max_row(score, half);
    if (lane % 4 == 0) maxima[lane / 4 + 8 * half][warp] = tile_max[half];
  }
}

// The maxima of a warp that has no tile of the chunk.
__device__ __forceinline__ void skip_scores(TileValues& maxima, int warp) {
  const int slot = threadIdx.x % 32;
  if (slot < kTileRows) maxima[slot][warp] = paged::kNothing;
}

// The running maxima of the rows: before this warp's tile, and past the whole chunk.
template <int Halves>
__device__ __forceinline__ void advance_max(const TileValues& chunk_maxima, int warp, float (&before)[Halves],
                                            float (&row_max)[Halves]) {
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const float4 maxima = *reinterpret_cast<const float4*>(chunk_maxima[threadIdx.x % 32 / 4 + 8 * half]);
    const float tile_max[kChunkTiles] = {maxima.x, maxima.y, maxima.z, maxima.w};
    before[half] = row_max[half];
#pragma unroll
    for (int i = 0; i < kChunkTiles; ++i) {
      if (i < warp) before[half] = max(before[half], tile_max[i]);
      row_max[half] = max(row_max[half], tile_max[i]);
    }
  }
}

}  // namespace grouped::direct
