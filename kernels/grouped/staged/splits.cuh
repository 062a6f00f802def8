// One block of one split: the steps of kernels/CONTRACT.md in their order, for every staged variant. A variant is a
// policy, as policies.cuh declares them.
#pragma once
#include "products.cuh"
#include "softmax.cuh"
#include "policies.cuh"

namespace grouped::staged {

// Stores one piece of the numerator to partial. -0 is never stored.
template <int D, class Memory>
__device__ __forceinline__ void store_partial(Memory& m, Accumulator& out, int slot, int column, int slots,
                                              float v_scale, float* partial_row) {
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < out.num_elements; ++i) {
    const float numerator = out.x[i] * v_scale;
    out.x[i] = numerator + 0.0f;
  }
  __syncwarp();  // the warp's last piece has left the stage
  wmma::store_matrix_sync(&m.stage[warp][0][0], out, Memory::stage_stride, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x % 32; i < 256; i += 32) {
    if (slot + i / 16 < slots) partial_row[(i / 16) * D + column + i % 16] = m.stage[warp][i / 16][i % 16];
  }
}

// Block (split, group of row tiles). partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum): active
// splits and slots < rows * G are written, nothing else.
template <int G, int D, class Variant>
__device__ __forceinline__ void run_split(const paged::Inputs& in, float* partial, float* lse) {
  constexpr int warps = Variant::threads / 32;
  constexpr int panel_tiles = Variant::panel_tiles;
  using Memory = SplitMemory<D, Variant::row_tiles, warps, panel_tiles, Variant::state_in_registers>;
  using Pieces = staged::Pieces<D, Variant>;
  static_assert(sizeof(Memory) == split_memory_bytes<D, Variant::row_tiles, warps, panel_tiles,
                                                     Variant::state_in_registers>,
                "the launch uses the formula");
  constexpr int products_across = Memory::tokens / Variant::Qk::tokens;  // of QK, in one panel
  constexpr int products_down = Memory::slots / Variant::Qk::slots;
  extern __shared__ SharedLine memory[];
  Memory& m = *reinterpret_cast<Memory*>(memory);

  const int split = blockIdx.x;
  const int total = total_tokens(in.lengths, in.rows);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int end = tiles.end * kTileTokens < total ? tiles.end * kTileTokens : total;
  const int warp = threadIdx.x / 32;
  const int first_slot = blockIdx.y * Variant::row_tiles * kTileRows;
  const int load_bytes = paged::widest_load(in);
  const float score_scale = in.scale * in.k_scale;
  int longest[Variant::row_tiles];
  if constexpr (Variant::skips_unseen) find_longest_rows<G>(longest, in, first_slot);

  const Pieces pieces(warp);
  Accumulator out[Pieces::down][Pieces::across];
#pragma unroll
  for (int i = 0; i < Pieces::down; ++i) {
#pragma unroll
    for (int j = 0; j < Pieces::across; ++j) wmma::fill_fragment(out[i][j], 0.0f);
  }
  begin_split<G, D>(m, in, first_slot);
  RowState<Variant::state_in_registers, Memory::slots> rows;
  rows.begin(m);

  for (int panel = tiles.first; panel < tiles.end; panel += panel_tiles) {
    const int first_token = panel * kTileTokens;
    RowTileSet working[panel_tiles];  // of each tile; empty where the split ends before it
#pragma unroll
    for (int i = 0; i < panel_tiles; ++i) {
      working[i] = panel + i < tiles.end ? every_row_tile<Variant> : 0u;
      if constexpr (Variant::skips_unseen) {
        working[i] &= row_tiles_that_see(longest, first_token + i * kTileTokens);
      }
    }
    load_panels<D, Variant>(m, in, load_bytes, first_token, end);
    __syncthreads();
    for (int i = warp; i < products_down * products_across; i += warps) {
      const int slot = i / products_across * Variant::Qk::slots;
      const int token = i % products_across * Variant::Qk::tokens;
      if (has(of_tile(working, token / kTileTokens), slot / kTileRows)) qk<D, Variant>(m, slot, token);
    }
    __syncthreads();
    for (int slot = warp; slot < Memory::slots; slot += warps) {
#pragma unroll
      for (int i = 0; i < panel_tiles; ++i) {
        if (!has(working[i], slot / kTileRows)) continue;
        rows.online_softmax(m, slot, i, m.length[slot] - (first_token + i * kTileTokens), score_scale);
      }
    }
    __syncthreads();
    rows.advance(m, first_token);
#pragma unroll
    for (int tile = 0; tile < panel_tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < Pieces::down; i += Pieces::together) {
#pragma unroll
        for (int j = 0; j < Pieces::across; ++j) pv(out, m, rows, pieces, i, j, tile, working[tile]);
      }
    }
    __syncthreads();  // the panels and weights have been read
  }

  const int slots_left = in.rows * G - first_slot;
  const int workspace = workspace_row<G>(split, first_slot);
#pragma unroll
  for (int i = 0; i < Pieces::down; ++i) {
    const int slot = pieces.row_tile(i) * kTileRows;
    if (slot >= slots_left) continue;
#pragma unroll
    for (int j = 0; j < Pieces::across; ++j) {
      store_partial<D>(m, out[i][j], slot, pieces.column(j), slots_left, in.v_scale,
                       partial + (workspace + slot) * D);
    }
  }
  rows.store(m, lse + workspace * 2, slots_left);
}

}  // namespace grouped::staged
