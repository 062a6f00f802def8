// The tensor-core products of one tile of tokens: QK, and PV into the numerator.
#pragma once
#include "fragments.cuh"
#include "panels.cuh"
#include "row_tiles.cuh"

namespace grouped::staged {

// One product of QK with q as the left operand: [Slots, 16] times [16, Tokens]. Both operands lie in their panels as
// [slot or token, k], so the left one is row-major and the right one column-major.
template <int Slots, int Tokens>
struct QueriesLeft {
  static constexpr int slots = Slots;
  static constexpr int tokens = Tokens;
  static constexpr wmma::layout_t order = wmma::mem_row_major;  // of the scores
  using Left = wmma::fragment<wmma::matrix_a, Slots, Tokens, 16, __half, wmma::row_major>;
  using Right = wmma::fragment<wmma::matrix_b, Slots, Tokens, 16, __half, wmma::col_major>;
  using Score = wmma::fragment<wmma::accumulator, Slots, Tokens, 16, float>;

  template <class Memory>
  __device__ __forceinline__ static const __half* left(const Memory& m, int slot, int) {
    return m.q[slot];
  }

  template <class Memory>
  __device__ __forceinline__ static const __half* right(const Memory& m, int, int token) {
    return m.k[token];
  }
};

// score[slots, tokens] = q k^T of one Qk product. The products in flight together are added in ascending k.
template <int D, class Variant, class Memory>
__device__ __forceinline__ void qk(Memory& m, int slot, int token) {
  constexpr int products = Variant::products_in_flight;
  static_assert(D / 16 % products == 0, "whole groups of products");
  using Qk = typename Variant::Qk;
  using Score = typename Qk::Score;
  const __half* const left_panel = Qk::left(m, slot, token);
  const __half* const right_panel = Qk::right(m, slot, token);
  typename Qk::Left left;
  typename Qk::Right right;
  Score t[products];
  typename Variant::template Sum<Score> sum;
#pragma unroll 2
  for (int first = 0; first < D; first += 16 * products) {
#pragma unroll
    for (int i = 0; i < products; ++i) {
      wmma::load_matrix_sync(left, left_panel + first + 16 * i, Memory::panel_stride);
      wmma::load_matrix_sync(right, right_panel + first + 16 * i, Memory::panel_stride);
      wmma::fill_fragment(t[i], 0.0f);
      wmma::mma_sync(t[i], left, right, t[i]);
    }
#pragma unroll
    for (int i = 0; i < products; ++i) sum.add(t[i]);
  }
  wmma::store_matrix_sync(&m.score[slot][token], sum.sum(), Memory::score_stride, Qk::order);
}

// The numerator in pieces of 16 slots by 16 columns. A warp holds `down` by `across` of them: the row tiles
// first_row_tile, first_row_tile + step, ... that exist, each at the same columns.
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

// out = fma(out, rescale, tile) for the `together` pieces of this warp from (first, j) on whose row tiles are in
// `working`; panel_tile is the tile's index in the panel. tile is P[0:16]V, R[0:16]V', P[16:32]V, R[16:32]V', each
// one's C the D before.
template <class Pieces, class Memory, class Rows>
__device__ __forceinline__ void pv(Accumulator (*out)[Pieces::across], Memory& m, const Rows& rows,
                                   const Pieces& pieces, int first, int j, int panel_tile,
                                   RowTileSet working) {
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
  for (int column = 0; column < kTileTokens; column += 16) {
    const int token = panel_tile * kTileTokens + column;
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
    rows.load_rescale(rescale, m, pieces.row_tile(first + i), panel_tile);
    accumulate(out[first + i][j], rescale, tile[i]);
  }
}

}  // namespace grouped::staged
