// What the rows see, in registers: all lengths are loaded at once, since each load by itself takes hundreds of cycles.
#pragma once
#include "../../paged/arithmetic.cuh"
#include "../geometry.cuh"

namespace grouped {
namespace direct {

struct Lengths {
  int of_row[kMaxRows];  // 0 for a row that does not exist
  int rows;
};

__device__ __forceinline__ Lengths load_lengths(const int* lengths, int rows) {
  Lengths loaded;
  loaded.rows = rows;
#pragma unroll
  for (int row = 0; row < kMaxRows; ++row) loaded.of_row[row] = row < rows ? lengths[row] : 0;
  return loaded;
}

__device__ __forceinline__ int total_tokens(const Lengths& lengths) {
  int total = 0;
#pragma unroll
  for (int row = 0; row < kMaxRows; ++row) total = lengths.of_row[row] > total ? lengths.of_row[row] : total;
  return total;
}

// What the rows of a block see: of the row tile in common, and each lane's own. Padding sees what the longest row
// sees, whatever its sums may be: they go nowhere.
template <int Halves>
struct Sight {
  int longest;
  int shortest;
  int own[Halves];
};

template <int G, int Halves>
__device__ __forceinline__ Sight<Halves> find_sight(const Lengths& lengths, int first_slot) {
  const int first_row = first_slot / G;
  const int last_row = (first_slot + 8 * Halves - 1) / G;
  Sight<Halves> sight;
  sight.longest = 0;
  sight.shortest = 0x7FFFFFFF;
#pragma unroll
  for (int row = 0; row < kMaxRows; ++row) {
    if (row < first_row || row > last_row || row >= lengths.rows) continue;
    const int length = lengths.of_row[row];
    sight.longest = length > sight.longest ? length : sight.longest;
    sight.shortest = length < sight.shortest ? length : sight.shortest;
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int own_row = (first_slot + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half) / G;
    sight.own[half] = sight.longest;
#pragma unroll
    for (int row = 0; row < kMaxRows; ++row) {
      if (row == own_row && row < lengths.rows) sight.own[half] = lengths.of_row[row];
    }
  }
  return sight;
}

}  // namespace direct
}  // namespace grouped
