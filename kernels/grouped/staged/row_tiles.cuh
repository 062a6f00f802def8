// What the rows see: the longest row of a call, and the sets of row tiles that see a token.
#pragma once
#include "../geometry.cuh"

namespace grouped::staged {

// The length of the longest row, at least 0.
__device__ __forceinline__ int total_tokens(const int* lengths, int rows) {
  int total = 0;
  for (int row = 0; row < rows; ++row) total = lengths[row] > total ? lengths[row] : total;
  return total;
}

// A bit for each row tile of the block.
using RowTileSet = unsigned;

template <class Variant>
constexpr RowTileSet every_row_tile = (1u << Variant::row_tiles) - 1;

__device__ __forceinline__ bool has(RowTileSet tiles, int row_tile) { return (tiles >> row_tile & 1u) != 0; }

// The set of one tile of a panel, found by comparison, since registers cannot be indexed.
template <int Count>
__device__ __forceinline__ RowTileSet of_tile(const RowTileSet (&sets)[Count], int panel_tile) {
  RowTileSet set = sets[0];
#pragma unroll
  for (int i = 1; i < Count; ++i) set = panel_tile == i ? sets[i] : set;
  return set;
}

// The longest row of each row tile; 0 where all of it is padding.
template <int G, int Count>
__device__ __forceinline__ void find_longest_rows(int (&longest)[Count], const paged::Inputs& in,
                                                  int first_slot) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const int slot = first_slot + i * kTileRows;
    longest[i] = 0;
    for (int row = slot / G; row <= (slot + kTileRows - 1) / G && row < in.rows; ++row) {
      longest[i] = in.lengths[row] > longest[i] ? in.lengths[row] : longest[i];
    }
  }
}

// The row tiles in which some row sees `token`, or one after it.
template <int Count>
__device__ __forceinline__ RowTileSet row_tiles_that_see(const int (&longest)[Count], int token) {
  RowTileSet seeing = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) seeing |= longest[i] > token ? 1u << i : 0u;
  return seeing;
}

}  // namespace grouped::staged
