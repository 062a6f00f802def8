// The online softmax of one chunk in the accumulators' layout. Lane (g, t) holds, for each 8-row half h of the row
// tile, slot g + 8h at the tile's columns 8j + 2t and 8j + 2t + 1.
//
// Three things here are the contract's results by other means:
// - max(): no score is NaN or -0 (a sum of products starts at +0, adding up to zero gives +0, its least multiple
//   is 2^-33 and scale * k_scale >= 2^-60, so that nothing underflows to -0), and so no order of the operands
//   shows.
// - A row whose sum is 0 has out = sum = +0, whose product with any finite factor is +0: its rescale need not be 1.
// - A tile that a row does not see adds nothing by itself: maximum -1e30, p = +0, rescale exp(0) = 1.
#pragma once
#include "chunk.cuh"
#include "pairs.cuh"

namespace grouped {
namespace direct {

// max(..., -80) by the same argument: x - greatest is not NaN.
__device__ __forceinline__ float weight_of(float x, float greatest) {
  return paged::contract_exp(max(x - greatest, paged::kExpFloor));
}

// The tree over a row's 32 columns: o = 16 and 8 within a lane, 4 and 2 over the four lanes of the row, 1 within
// the lane again. Addition commutes, so that exchanging gives all four lanes what shuffling down gives the first.
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

__device__ __forceinline__ float max_row(const float (&score)[4][4], int half) {
  const int i = 2 * half;
  float greatest = max(score[0][i], score[0][i + 1]);
#pragma unroll
  for (int j = 1; j < 4; ++j) greatest = max(greatest, max(score[j][i], score[j][i + 1]));
  greatest = max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 2));
  return max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 1));
}

// Scores of one warp's tile: scaled, -1e30 where a row does not see. `visible`: columns that each half's row sees;
// looked at only if `masked`. The rows' maxima go to shared memory, for the tiles behind this one.
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

// The maxima of the rows before this warp's tile, and past the whole chunk.
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

// One warp's tile: p, and from it P = half(p) and R = half((p - P) * 2^11), as A fragments of PV, tile sum and
// rescale. p stands where the scores stood.
template <int Halves>
__device__ __forceinline__ void weigh(ChunkWeights& weights, int warp, float (&p)[4][4],
                                      const float (&tile_max)[Halves], const float (&before)[Halves], bool masked,
                                      const int (&visible)[Halves]) {
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
  const int half = lane % 4;  // each lane has all four lanes' sums: one of them writes for one half
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

// What a warp without a tile says of it: nothing of it is seen.
__device__ __forceinline__ void skip_tile(TileValues& maxima, int warp) {
  const int slot = threadIdx.x % 32;
  if (slot < kTileRows) maxima[slot][warp] = paged::kNothing;
}

// And in weigh's place, where the last chunk's sums have been read: +0, which advance_sum loads along with the sums of
// the others. It has no factor, which nobody reads.
__device__ __forceinline__ void skip_sums(ChunkWeights& weights, int warp) {
  const int slot = threadIdx.x % 32;
  if (slot < kTileRows) weights.tile_sum[slot][warp] = 0.0f;
}

}  // namespace direct
}  // namespace grouped
