// The roles of lean_roles.cuh with the softmax of a chunk ahead of QK of the next one. The first barrier of a phase
// then falls within QK, where it halves the work of both roles.
//
// In phase n, from 0 on, the producers make the weights of chunk n, whose scores they have, and then the scores of
// chunk n + 1, while the consumers use chunk n - 1. Two barriers a phase:
//   first   tiles 0 and 1 of chunk n - 1 have been consumed, and V of its tiles 2 and 3 is there; the maxima of chunk n
//           have been read
//   second  the weights of chunk n are there, V of its tiles 0 and 1, and the maxima of chunk n + 1; chunk n - 1 has
//           been consumed
// The scores of chunk 0 and a barrier come before phase 0. The last phase has no work for the producers and only the
// first barrier. V is copied at the beginning of a phase: tiles 0 and 1, which have two buffers, of chunk n; the others
// of chunk n - 1.
#pragma once
#include "lean_roles.cuh"

namespace grouped::direct {

template <int D>
constexpr int steps_before_barrier = D / 64;  // of QK: softmax and a quarter of QK are half of the work

struct EvenRoles {
  // Producer warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
  template <int D, int Page, int Halves>
  __device__ __forceinline__ static void produce_chunks(LeanMemory<D>& m, const paged::Inputs& in,
                                                      const Block<Halves>& block, int warp,
                                                      float (&row_max)[Halves]) {
    constexpr int steps = D / 16;
    constexpr int early_steps = steps_before_barrier<D>;
    const float score_scale = in.scale * in.k_scale;
    SwizzledRow<D>* const keys = &m.k[warp * kTileTokens];
    const bool late = warp >= kDoubleTiles;
    audit::CopyQueue copies;
    const auto copy = [&](SwizzledRow<D>* to, const paged::Storage& storage, int tile, const TileAddress& address) {
      if (tile < block.end) {
        copy_swizzled<D>(copies, to, storage, address, block.load_bytes, tile * kTileTokens, block.dense, block.total);
      }
    };
    float score[4][4];
    float compensation[4][2 * Halves];
    float tile_max[Halves];
    int visible[Halves];
    const auto masked = [&](int tile) { return (tile + 1) * kTileTokens > block.visible.shortest; };
    const auto set_visible = [&](int tile) {
#pragma unroll
      for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - tile * kTileTokens;
    };
    const auto score_rest = [&](int tile) {
      if (tile < block.end) {
        sum_steps<D, 2 * Halves, early_steps, steps>(score, compensation, m.q, keys);
        set_visible(tile);
        scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked(tile), visible);
      } else {
        skip_scores(m.tile_max, warp);
      }
      __syncwarp();  // K has been read
    };
#pragma unroll
    for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;

    int tile = block.first + warp;
    TileAddress address = find_tile<Page>(in, tile, block);
    TileAddress next = find_tile<Page>(in, tile + kChunkTiles, block);
    TileAddress of_values = address;  // of the next V to fetch
    copy(keys, in.k, tile, address);
    copies.commit();
    copies.wait<0>();
    sync_roles(m);
    if (block.first >= block.end) return;
    if (tile < block.end) sum_steps<D, 2 * Halves, 0, early_steps>(score, compensation, m.q, keys);
    score_rest(tile);
    copy(keys, in.k, tile + kChunkTiles, next);
    copies.commit();
    sync_roles(m);

    int parity = 0;
#pragma unroll 1
    while (true) {
      const int tile_of_values = late ? tile - kChunkTiles : tile;
      if (tile_of_values >= block.first) {
        copy(m.v + value_row(warp, parity), in.v, tile_of_values, of_values);
        of_values = late ? address : next;
      }
      copies.commit();
      if (tile >= block.end + warp) break;
      address = next;
      next = find_tile<Page>(in, tile + 2 * kChunkTiles, block);

      float before[Halves];
      advance_max(m.tile_max, warp, before, row_max);
      if (tile < block.end) {
        set_visible(tile);
        store_weights<Halves>(m.weights[parity], warp, score, tile_max, before, masked(tile), visible);
      } else {
        skip_sums(m.weights[parity], warp);
      }
      copies.wait<1>();
      __syncwarp();  // the warp's K is there
      tile += kChunkTiles;
      if (tile < block.end) sum_steps<D, 2 * Halves, 0, early_steps>(score, compensation, m.q, keys);
      copies.wait<0>();  // for V
      sync_roles(m);

      score_rest(tile);
      copy(keys, in.k, tile + kChunkTiles, next);
      copies.commit();
      parity ^= 1;
      sync_roles(m);
    }
    copies.wait<0>();
    sync_roles(m);
  }

  template <int D, int Halves>
  __device__ __forceinline__ static void consume_chunks(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                                    Numerator<D>& out, float (&row_sum)[Halves]) {
    consume_only<D, Halves, kDoubleTiles, 4>(m, block, warp, out, row_sum);
  }
};

}  // namespace grouped::direct
