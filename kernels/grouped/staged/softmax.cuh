// The online softmax of one tile, and the state of the rows between tiles.
#pragma once
#include "../../paged/trees.cuh"
#include "fragments.cuh"
#include "panels.cuh"

namespace grouped::staged {

// The contribution of a tile to a row's state, the same in every lane.
struct TileState {
  float new_max;  // the row's maximum, this tile included
  float sum;      // of the unrounded probabilities
};

// One warp, one slot that sees something of the tile; lane = column. score[slot] -> p.
// visible: how many columns of this tile the row sees.
template <class Memory>
__device__ __forceinline__ TileState weigh(float& p, const Memory& m, int slot, int panel_tile, int visible,
                                           float row_max, float score_scale) {
  const int lane = threadIdx.x % 32;
  const bool seen = lane < visible;
  const float score = seen ? m.score[slot][panel_tile * kTileTokens + lane] * score_scale : paged::kNothing;
  const float new_max = paged::max_of(row_max, paged::max_tree(score));
  p = seen ? paged::weight_of(score, new_max) : 0.0f;
  return {new_max, paged::sum_tree(p)};
}

// Advances a row past one tile and returns the factor for everything before it.
__device__ __forceinline__ float advance_row(float& row_max, float& row_sum, const TileState& tile) {
  const float rescale = row_sum > 0.0f ? paged::weight_of(row_max, tile.new_max) : 1.0f;
  row_max = tile.new_max;
  row_sum = __fmaf_rn(row_sum, rescale, tile.sum);
  return rescale;
}

// P = half(p) and R = half((p - P) * 2^11).
template <class Memory>
__device__ __forceinline__ void store_weights(Memory& m, int slot, int column, float p) {
  const __half rounded = __float2half_rn(p);
  m.p[slot][column] = rounded;
  m.r[slot][column] = __float2half_rn((p - __half2float(rounded)) * 2048.0f);
}

// The (max, sum) and factors of the rows, in shared memory. A variant that keeps them in registers specialises this.
// A block calls
//
//   begin           once, before the first barrier
//   online_softmax  one warp, one slot, one tile of the panel: score[slot] -> p[slot], r[slot]; the same warp serves
//                   the tiles of a panel in their order. visible: how many columns of this tile the row sees; with 0
//                   or less the row's state does not change
//   advance         all threads, after the barrier behind online_softmax
//   load_rescale    one warp: the factors of a row tile, element for element as PV's accumulators hold it
//   store           all threads, after the last tile: lse f32 [slots_left, 2] = (max, sum)
template <bool InRegisters, int Slots>
struct RowState;

template <int Slots>
struct RowState<false, Slots> {
  template <class Memory>
  __device__ __forceinline__ void begin(Memory& m) const {
    for (int slot = threadIdx.x; slot < Slots; slot += blockDim.x) {
      m.state.row_max[slot] = paged::kNothing;
      m.state.row_sum[slot] = 0.0f;
    }
  }

  template <class Memory>
  __device__ __forceinline__ void online_softmax(Memory& m, int slot, int panel_tile, int visible,
                                                 float score_scale) const {
    const int lane = threadIdx.x % 32;
    float p = 0.0f;
    float rescale = 1.0f;
    if (visible > 0) {
      if (panel_tile > 0) __syncwarp();  // lane 0 has written the state
      float row_max = m.state.row_max[slot];
      float row_sum = m.state.row_sum[slot];
      const TileState tile = weigh(p, m, slot, panel_tile, visible, row_max, score_scale);
      rescale = advance_row(row_max, row_sum, tile);
      __syncwarp();  // every lane has read the state
      if (lane == 0) {
        m.state.row_max[slot] = row_max;
        m.state.row_sum[slot] = row_sum;
      }
    }
    store_weights(m, slot, panel_tile * kTileTokens + lane, p);
    if (lane < 16) m.state.rescale[panel_tile][slot][lane] = rescale;
  }

  template <class Memory>
  __device__ __forceinline__ void advance(const Memory&, int) const {}

  template <class Memory>
  __device__ __forceinline__ void load_rescale(Accumulator& rescale, const Memory& m, int row_tile,
                                               int panel_tile) const {
    const float* const first = &m.state.rescale[panel_tile][row_tile * kTileRows][0];
    wmma::load_matrix_sync(rescale, first, 16, wmma::mem_row_major);
  }

  template <class Memory>
  __device__ __forceinline__ void store(const Memory& m, float* lse, int slots_left) const {
    for (int slot = threadIdx.x; slot < Slots && slot < slots_left; slot += blockDim.x) {
      lse[slot * 2] = m.state.row_max[slot];
      lse[slot * 2 + 1] = m.state.row_sum[slot];
    }
  }
};

}  // namespace grouped::staged
