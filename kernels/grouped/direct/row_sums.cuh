// The running sums of the rows, advanced by a chunk at a time.
#pragma once
#include "chunk.cuh"

namespace grouped::direct {

// sum = fma(sum, rescale, tile sum), for the first `tiles` tiles of the chunk in turn.
template <int Halves>
__device__ __forceinline__ void advance_sum(const ChunkWeights& weights, float (&row_sum)[Halves], int tiles) {
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = threadIdx.x % 32 / 4 + 8 * half;
    const float4 sums = *reinterpret_cast<const float4*>(weights.tile_sum[slot]);
    const float tile_sum[kChunkTiles] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
    for (int i = 0; i < kChunkTiles; ++i) {
      if (i < tiles) row_sum[half] = __fmaf_rn(row_sum[half], weights.tiles[i].rescale[slot], tile_sum[i]);
    }
  }
}

// The sums of a warp that has no tile of the chunk: +0, which advance_sum loads along with the others.
__device__ __forceinline__ void skip_sums(ChunkWeights& weights, int warp) {
  const int slot = threadIdx.x % 32;
  if (slot < kTileRows) weights.tile_sum[slot][warp] = 0.0f;
}

}  // namespace grouped::direct
