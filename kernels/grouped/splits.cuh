// One block of one split: the steps of kernels/CONTRACT.md in their order, for every variant.
//
// A variant is a policy. It may change which thread loads what and when, never an operation or an order:
//   row_tiles   16-row tiles that one block serves
//   threads     threads a block, whole warps
#pragma once
#include <mma.h>

#include "softmax.cuh"

namespace grouped {

namespace wmma = nvcuda::wmma;
using RowFragment = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using KeyFragment = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
using ValueFragment = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Elements of two accumulators with the same index are the same matrix element: the type fixes the layout.
// So the three functions below need not know it.

// sum += t, compensated.
__device__ __forceinline__ void kahan_add(Accumulator& sum, Accumulator& compensation, const Accumulator& t) {
#pragma unroll
  for (int i = 0; i < t.num_elements; ++i) {
    const float y = t.x[i] - compensation.x[i];
    const float next = sum.x[i] + y;
    compensation.x[i] = (next - sum.x[i]) - y;
    sum.x[i] = next;
  }
}

// out = fma(out, rescale, tile). A row that sees nothing has rescale 1 and tile +0, which leaves all but the
// sign of a zero, and that is lost at the end of the split.
__device__ __forceinline__ void accumulate(Accumulator& out, const Accumulator& rescale,
                                           const Accumulator& tile) {
#pragma unroll
  for (int i = 0; i < out.num_elements; ++i) out.x[i] = __fmaf_rn(out.x[i], rescale.x[i], tile.x[i]);
}

// V * 2^-11, exact in f16 for every finite e4m3.
__device__ __forceinline__ void shrink(ValueFragment& values) {
#pragma unroll
  for (int i = 0; i < values.num_elements; ++i) {
    values.x[i] = __float2half_rn(__half2float(values.x[i]) * 0x1p-11f);
  }
}

// score[16 slots, 16 tokens] = q k^T.
template <int D, class Memory>
__device__ __forceinline__ void qk(Memory& m, int slot, int token) {
  RowFragment q;
  KeyFragment k;
  Accumulator t;
  Accumulator sum;
  Accumulator compensation;
  wmma::fill_fragment(sum, 0.0f);
  wmma::fill_fragment(compensation, 0.0f);
#pragma unroll 4
  for (int d = 0; d < D; d += 16) {
    wmma::load_matrix_sync(q, &m.q[slot][d], Memory::panel_stride);
    wmma::load_matrix_sync(k, &m.k[token][d], Memory::panel_stride);
    wmma::fill_fragment(t, 0.0f);
    wmma::mma_sync(t, q, k, t);
    kahan_add(sum, compensation, t);
  }
  wmma::store_matrix_sync(&m.score[slot][token], sum, Memory::score_stride, wmma::mem_row_major);
}

// tile[16 slots, 16 columns]: P[0:16]V, R[0:16]V', P[16:32]V, R[16:32]V', each one's C the D before it.
template <class Memory>
__device__ __forceinline__ void pv(Accumulator& tile, Memory& m, int slot, int column) {
  RowFragment weights;
  ValueFragment values;
  wmma::fill_fragment(tile, 0.0f);
#pragma unroll
  for (int token = 0; token < kTileTokens; token += 16) {
    wmma::load_matrix_sync(values, &m.v[token][column], Memory::panel_stride);
    wmma::load_matrix_sync(weights, &m.p[slot][token], Memory::weight_stride);
    wmma::mma_sync(tile, weights, values, tile);
    shrink(values);
    wmma::load_matrix_sync(weights, &m.r[slot][token], Memory::weight_stride);
    wmma::mma_sync(tile, weights, values, tile);
  }
}

// One [16 slots, 16 columns] piece of the numerator to partial. -0 is never stored.
template <int G, int D, class Memory>
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
template <int G, int D, class Variant, class Memory>
__device__ __forceinline__ void run_split(Memory& m, const paged::Inputs& in, float* partial, float* lse) {
  constexpr int warps = Variant::threads / 32;
  constexpr int column_tiles = D / 16;
  constexpr int pieces = (Variant::row_tiles * column_tiles + warps - 1) / warps;

  const int split = blockIdx.x;
  const int total = paged::total_tokens(in.lengths, in.rows);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int warp = threadIdx.x / 32;
  const int first_slot = blockIdx.y * Variant::row_tiles * kTileRows;
  const int slots_left = in.rows * G - first_slot;
  const int row_tiles_left = (slots_left + kTileRows - 1) / kTileRows;
  const int row_tiles = row_tiles_left < Variant::row_tiles ? row_tiles_left : Variant::row_tiles;
  const float score_scale = in.scale * in.k_scale;

  // The numerator in pieces of 16 by 16: a warp's piece i is number warp + i * warps of them, by rows.
  Accumulator out[pieces];
#pragma unroll
  for (int i = 0; i < pieces; ++i) wmma::fill_fragment(out[i], 0.0f);
  begin_split<G, D>(m, in, first_slot);

  for (int tile = tiles.first; tile < tiles.end; ++tile) {
    const int first_token = tile * kTileTokens;
    load_panels<D>(m, in, first_token, total);
    __syncthreads();
    for (int half = warp; half < 2 * row_tiles; half += warps) qk<D>(m, half / 2 * kTileRows, half % 2 * 16);
    __syncthreads();
    for (int slot = warp; slot < row_tiles * kTileRows; slot += warps) {
      online_softmax(m, slot, m.length[slot] - first_token, score_scale);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const int slot = (warp + i * warps) / column_tiles * kTileRows;
      if (slot >= row_tiles * kTileRows) continue;
      Accumulator piece;
      Accumulator rescale;
      pv(piece, m, slot, (warp + i * warps) % column_tiles * 16);
      wmma::load_matrix_sync(rescale, &m.rescale[slot][0], 16, wmma::mem_row_major);
      accumulate(out[i], rescale, piece);
    }
    __syncthreads();  // the panels and weights have been read
  }

  const int workspace = workspace_row<G>(split, first_slot);
#pragma unroll
  for (int i = 0; i < pieces; ++i) {
    const int slot = (warp + i * warps) / column_tiles * kTileRows;
    if (slot >= row_tiles * kTileRows) continue;
    store_partial<G, D>(m, out[i], slot, (warp + i * warps) % column_tiles * 16, slots_left, in.v_scale,
                        partial + (workspace + slot) * D);
  }
  for (int slot = threadIdx.x; slot < Memory::slots; slot += Variant::threads) {
    if (slot >= slots_left) break;
    lse[(workspace + slot) * 2] = m.row_max[slot];
    lse[(workspace + slot) * 2 + 1] = m.row_sum[slot];
  }
}

}  // namespace grouped
