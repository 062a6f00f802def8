// The tensor-core products of one tile of tokens: QK, and PV into the numerator.
#pragma once
#include <mma.h>

#include "panels.cuh"
#include "row_tiles.cuh"

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

// score[16 slots, 16 tokens] = q k^T. The products that are in flight together are added in ascending k.
template <int D, class Variant, class Memory>
__device__ __forceinline__ void qk(Memory& m, int slot, int token) {
  constexpr int products = Variant::products_in_flight;
  static_assert(D / 16 % products == 0, "whole groups of products");
  RowFragment q;
  KeyFragment k;
  Accumulator t[products];
  Accumulator sum;
  Accumulator compensation;
  wmma::fill_fragment(sum, 0.0f);
  wmma::fill_fragment(compensation, 0.0f);
#pragma unroll 2
  for (int first = 0; first < D; first += 16 * products) {
#pragma unroll
    for (int i = 0; i < products; ++i) {
      wmma::load_matrix_sync(q, &m.q[slot][first + 16 * i], Memory::panel_stride);
      wmma::load_matrix_sync(k, &m.k[token][first + 16 * i], Memory::panel_stride);
      wmma::fill_fragment(t[i], 0.0f);
      wmma::mma_sync(t[i], q, k, t[i]);
    }
#pragma unroll
    for (int i = 0; i < products; ++i) kahan_add(sum, compensation, t[i]);
  }
  wmma::store_matrix_sync(&m.score[slot][token], sum, Memory::score_stride, wmma::mem_row_major);
}

// The numerator in pieces of 16 slots by 16 columns. A warp holds `down` by `across` of them, whatever the
// variant: the row tiles first_row_tile, first_row_tile + step, ... (as far as they exist), each at the same
// columns.
template <int D, class Variant>
struct Pieces {
  static constexpr int warps = Variant::threads / 32;
  static constexpr int column_tiles = D / 16;
  static constexpr int across = column_tiles > warps ? column_tiles / warps : 1;
  static constexpr int step = warps > column_tiles ? warps / column_tiles : 1;
  static constexpr int down = (Variant::row_tiles + step - 1) / step;
  static constexpr int together = Variant::reuses_values ? down : 1;  // row tiles that one V fragment serves
  static_assert(across * warps == column_tiles || step * column_tiles == warps, "every piece has one warp");

  int first_row_tile;
  int first_column_tile;

  __device__ __forceinline__ explicit Pieces(int warp)
      : first_row_tile(step > 1 ? warp / column_tiles : 0),
        first_column_tile(step > 1 ? warp % column_tiles : warp) {}

  __device__ __forceinline__ int row_tile(int i) const { return first_row_tile + i * step; }
  __device__ __forceinline__ int column(int j) const { return (first_column_tile + j * warps) * 16; }
};

// out = fma(out, rescale, tile) for the `together` pieces of this warp from (first, j) on, as far as their
// row tiles are in `working`. tile is P[0:16]V, R[0:16]V', P[16:32]V, R[16:32]V', each one's C the D before.
template <class Pieces, class Memory>
__device__ __forceinline__ void pv(Accumulator (*out)[Pieces::across], Memory& m, const Pieces& pieces,
                                   int first, int j, RowTileSet working) {
  RowTileSet own = 0;
#pragma unroll
  for (int i = 0; i < Pieces::together; ++i) own |= 1u << pieces.row_tile(first + i);
  if ((own & working) == 0) return;
  Accumulator tile[Pieces::together];
  RowFragment weights;
  ValueFragment values;
#pragma unroll
  for (int i = 0; i < Pieces::together; ++i) wmma::fill_fragment(tile[i], 0.0f);
#pragma unroll
  for (int token = 0; token < kTileTokens; token += 16) {
    wmma::load_matrix_sync(values, &m.v[token][pieces.column(j)], Memory::panel_stride);
#pragma unroll
    for (int i = 0; i < Pieces::together; ++i) {
      if (!has(working, pieces.row_tile(first + i))) continue;
      const int slot = pieces.row_tile(first + i) * kTileRows;
      wmma::load_matrix_sync(weights, &m.p[slot][token], Memory::weight_stride);
      wmma::mma_sync(tile[i], weights, values, tile[i]);
    }
    shrink(values);
#pragma unroll
    for (int i = 0; i < Pieces::together; ++i) {
      if (!has(working, pieces.row_tile(first + i))) continue;
      const int slot = pieces.row_tile(first + i) * kTileRows;
      wmma::load_matrix_sync(weights, &m.r[slot][token], Memory::weight_stride);
      wmma::mma_sync(tile[i], weights, values, tile[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < Pieces::together; ++i) {
    if (!has(working, pieces.row_tile(first + i))) continue;
    Accumulator rescale;
    const int slot = pieces.row_tile(first + i) * kTileRows;
    wmma::load_matrix_sync(rescale, &m.rescale[slot][0], 16, wmma::mem_row_major);
    accumulate(out[first + i][j], rescale, tile[i]);
  }
}

}  // namespace grouped
