// The roles of lean.cuh with the softmax of a chunk ahead of QK of the next one, so that a phase's first barrier can
// stand within QK, where it halves both roles' work.
//
// Phase n, from 0 on: the first role makes the weights of chunk n, whose scores it has, and then the scores of chunk
// n + 1, while the second one adds chunk n - 1. Two barriers a phase:
//   first   tiles 0 and 1 of chunk n - 1 have been added, and its tiles 2 and 3 of V are there; the maxima of chunk n
//           have been read
//   second  the weights of chunk n are there, V of its tiles 0 and 1, and the maxima of chunk n + 1; chunk n - 1 has
//           been added
// Before phase 0 there are the scores of chunk 0 and a barrier. The last phase has nothing to weigh and one barrier,
// the first. V comes at the beginning of a phase: tiles 0 and 1, which have two places, of chunk n; the others of chunk
// n - 1.
#pragma once
#include "lean.cuh"

namespace grouped {
namespace direct {

template <int D>
constexpr int steps_before_barrier = D / 64;  // of QK: softmax and a quarter of QK are half of the work

struct EvenRoles {
  // The role of warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
  template <int D, int Page, int Halves>
  __device__ __forceinline__ static void weigh_chunks(LeanMemory<D>& m, const paged::Inputs& in,
                                                      const Block<Halves>& block, int warp,
                                                      float (&row_max)[Halves]) {
    constexpr int steps = D / 16;
    constexpr int early_steps = steps_before_barrier<D>;
    const float score_scale = in.scale * in.k_scale;
    WholeRow<D>* const keys = &m.k[warp * kTileTokens];
    const bool late = warp >= kTilesOfTwoPlaces;
    audit::CopyQueue copies;
    const auto find = [&](int tile) {
      TilePlaces places = {};
      if (tile < block.end) places = find_tile<Page>(in, tile * kTileTokens, block.total);
      return places;
    };
    const auto copy = [&](WholeRow<D>* to, const paged::Storage& storage, int tile, const TilePlaces& places) {
      if (tile < block.end) {
        copy_swizzled<D>(copies, to, storage, places, block.load_bytes, tile * kTileTokens, block.dense, block.total);
      }
    };
    float score[4][4];
    float compensation[4][2 * Halves];
    float tile_max[Halves];
    int visible[Halves];
    const auto masked = [&](int tile) { return (tile + 1) * kTileTokens > block.sight.shortest; };
    const auto look = [&](int tile) {
#pragma unroll
      for (int half = 0; half < Halves; ++half) visible[half] = block.sight.own[half] - tile * kTileTokens;
    };
    const auto score_rest = [&](int tile) {
      if (tile < block.end) {
        sum_steps<D, 2 * Halves, early_steps, steps>(score, compensation, m.q, keys);
        look(tile);
        scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked(tile), visible);
      } else {
        skip_tile(m.tile_max, warp);
      }
      __syncwarp();  // K has been read
    };
#pragma unroll
    for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;

    int tile = block.first + warp;
    TilePlaces places = find(tile);
    TilePlaces next = find(tile + kChunkTiles);
    TilePlaces of_values = places;  // of the next V to fetch
    copy(keys, in.k, tile, places);
    copies.commit();
    copies.wait<0>();
    meet(m);
    if (block.first >= block.end) return;
    if (tile < block.end) sum_steps<D, 2 * Halves, 0, early_steps>(score, compensation, m.q, keys);
    score_rest(tile);
    copy(keys, in.k, tile + kChunkTiles, next);
    copies.commit();
    meet(m);

    int parity = 0;
#pragma unroll 1
    while (true) {
      const int tile_of_values = late ? tile - kChunkTiles : tile;
      if (tile_of_values >= block.first) {
        copy(m.v + place_of_values(warp, parity), in.v, tile_of_values, of_values);
        of_values = late ? places : next;
      }
      copies.commit();
      if (tile >= block.end + warp) break;
      places = next;
      next = find(tile + 2 * kChunkTiles);

      float before[Halves];
      advance_max(m.tile_max, warp, before, row_max);
      if (tile < block.end) {
        look(tile);
        weigh<Halves>(m.weights[parity], warp, score, tile_max, before, masked(tile), visible);
      } else {
        skip_sums(m.weights[parity], warp);
      }
      copies.wait<1>();
      __syncwarp();  // the warp's K is there
      tile += kChunkTiles;
      if (tile < block.end) sum_steps<D, 2 * Halves, 0, early_steps>(score, compensation, m.q, keys);
      copies.wait<0>();  // for V
      meet(m);

      score_rest(tile);
      copy(keys, in.k, tile + kChunkTiles, next);
      copies.commit();
      parity ^= 1;
      meet(m);
    }
    copies.wait<0>();
    meet(m);
  }

  template <int D, int Halves>
  __device__ __forceinline__ static void add_chunks(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                                    Numerator<D>& out, float (&row_sum)[Halves]) {
    only_add<D, Halves, kTilesOfTwoPlaces, 4>(m, block, warp, out, row_sum);
  }
};

}  // namespace direct
}  // namespace grouped
