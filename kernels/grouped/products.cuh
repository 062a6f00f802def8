// The tensor-core products of one tile of tokens: QK, and PV into the numerator.
#pragma once
#include "fragments.cuh"
#include "panels.cuh"
#include "row_tiles.cuh"

namespace grouped {

// One product of QK. Both operands lie in their panels as [slot or token, k], so that the left one is
// row-major and the right one column-major, whichever is which.
template <class Variant>
struct QkFragments {
  static constexpr int m = Variant::keys_left ? Variant::qk_tokens : Variant::qk_slots;
  static constexpr int n = Variant::keys_left ? Variant::qk_slots : Variant::qk_tokens;
  using Left = wmma::fragment<wmma::matrix_a, m, n, 16, __half, wmma::row_major>;
  using Right = wmma::fragment<wmma::matrix_b, m, n, 16, __half, wmma::col_major>;
  using Score = wmma::fragment<wmma::accumulator, m, n, 16, float>;
  static constexpr wmma::layout_t order = Variant::keys_left ? wmma::mem_col_major : wmma::mem_row_major;
};

// score[qk_slots, qk_tokens] = q k^T, or its transpose k q^T stored by columns. The products that are in
// flight together are added in ascending k.
template <int D, class Variant, class Memory>
__device__ __forceinline__ void qk(Memory& m, int slot, int token) {
  constexpr int products = Variant::products_in_flight;
  static_assert(D / 16 % products == 0, "whole groups of products");
  using Fragments = QkFragments<Variant>;
  using Score = typename Fragments::Score;
  const __half* const left_panel = Variant::keys_left ? m.k[token] : m.q[slot];
  const __half* const right_panel = Variant::keys_left ? m.q[slot] : m.k[token];
  typename Fragments::Left left;
  typename Fragments::Right right;
  Score t[products];
  Score sum;
  Score compensation;
  [[maybe_unused]] double wide_sum[Score::num_elements] = {};
  wmma::fill_fragment(sum, 0.0f);
  wmma::fill_fragment(compensation, 0.0f);
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
    for (int i = 0; i < products; ++i) {
      if constexpr (Variant::sums_in_fp64) {
        fp64_add(wide_sum, t[i]);
      } else {
        kahan_add(sum, compensation, t[i]);
      }
    }
  }
  if constexpr (Variant::sums_in_fp64) round_sum(sum, wide_sum);
  wmma::store_matrix_sync(&m.score[slot][token], sum, Memory::score_stride, Fragments::order);
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
// row tiles are in `working`; panel_tile is the tile's place in the panel. tile is P[0:16]V, R[0:16]V',
// P[16:32]V, R[16:32]V', each one's C the D before.
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

}  // namespace grouped
