// The state of the rows in registers: every warp keeps that of all slots, lane l the slots l, l + 32, ...
//
// One warp computes a row's softmax, and PV needs the row's factor in all warps. So that warp passes what the tile adds
// through shared memory, and each warp advances its own copy.
#pragma once
#include "../staged/splits.cuh"

namespace grouped::staged {

// The values of one tile that the warp of a row passes on to the others.
template <int Slots>
struct StateMemory<Slots, 1, true> {
  float new_max[Slots];
  float tile_sum[Slots];
};

template <int Slots>
struct RowState<true, Slots> {
  static constexpr int per_lane = (Slots + 31) / 32;

  float row_max[per_lane];
  float row_sum[per_lane];
  float rescale[per_lane];
  int row_of[Accumulator::num_elements];  // the row of a row tile that each element of an accumulator is in

  // CUDA does not specify the layout of fragments, so a matrix of row numbers is loaded to find it.
  template <class Memory>
  __device__ __forceinline__ void begin(Memory& m) {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      row_max[i] = paged::kNothing;
      row_sum[i] = 0.0f;
      rescale[i] = 1.0f;
    }
    auto& numbers = m.stage[threadIdx.x / 32];
    for (int i = threadIdx.x % 32; i < 256; i += 32) numbers[i / 16][i % 16] = static_cast<float>(i / 16);
    __syncwarp();
    Accumulator rows;
    wmma::load_matrix_sync(rows, &numbers[0][0], Memory::stage_stride, wmma::mem_row_major);
#pragma unroll
    for (int i = 0; i < rows.num_elements; ++i) row_of[i] = static_cast<int>(rows.x[i]);
  }

  template <class Memory>
  __device__ __forceinline__ void online_softmax(Memory& m, int slot, int panel_tile, int visible,
                                                 float score_scale) const {
    const int lane = threadIdx.x % 32;
    float p = 0.0f;
    if (visible > 0) {
      const TileState tile = weigh(p, m, slot, panel_tile, visible, of_slot(row_max, slot), score_scale);
      if (lane == 0) {
        m.state.new_max[slot] = tile.new_max;
        m.state.tile_sum[slot] = tile.sum;
      }
    }
    store_weights(m, slot, panel_tile * kTileTokens + lane, p);
  }

  template <class Memory>
  __device__ __forceinline__ void advance(const Memory& m, int first_token) {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const int slot = threadIdx.x % 32 + 32 * i;
      rescale[i] = 1.0f;
      if (slot >= Slots || m.length[slot] <= first_token) continue;
      rescale[i] = advance_row(row_max[i], row_sum[i], {m.state.new_max[slot], m.state.tile_sum[slot]});
    }
  }

  template <class Memory>
  __device__ __forceinline__ void load_rescale(Accumulator& factors, const Memory&, int row_tile, int) const {
#pragma unroll
    for (int i = 0; i < factors.num_elements; ++i) {
      factors.x[i] = of_slot(rescale, row_tile * kTileRows, row_of[i]);
    }
  }

  template <class Memory>
  __device__ __forceinline__ void store(const Memory&, float* lse, int slots_left) const {
    if (threadIdx.x >= 32) return;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const int slot = threadIdx.x + 32 * i;
      if (slot >= Slots || slot >= slots_left) continue;
      lse[slot * 2] = row_max[i];
      lse[slot * 2 + 1] = row_sum[i];
    }
  }

 private:
  // The value of slot first + row, from the lane that holds it. `first` is the same in the whole warp, `row` is each
  // lane's own; both slots lie in one element. All elements are shuffled and a value is chosen: choosing an address
  // would put the array into local memory.
  __device__ __forceinline__ static float of_slot(const float (&values)[per_lane], int first, int row = 0) {
    float value = __shfl_sync(paged::kAllLanes, values[0], first % 32 + row);
#pragma unroll
    for (int i = 1; i < per_lane; ++i) {
      const float other = __shfl_sync(paged::kAllLanes, values[i], first % 32 + row);
      value = first / 32 == i ? other : value;
    }
    return value;
  }
};

template <int G, int Page>
struct RegisterSoftmax : VisibleTile<G, Page> {
  static constexpr bool state_in_registers = true;
};

}  // namespace grouped::staged
