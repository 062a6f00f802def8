// How `grouped` cuts its work: splits of the tokens, tiles of 32 tokens, 16-row tiles of slots. A slot is
// row * G + head.
#pragma once
#include "../paged/inputs.cuh"

namespace grouped {

constexpr int kMaxSplits = 80;
constexpr int kMaxRows = 8;
constexpr int kTileTokens = 32;
constexpr int kTileRows = 16;

// Splits that exist for a total. There is none for a total of 0, where nothing of the workspace is written.
__device__ __forceinline__ int active_splits(int total) {
  if (total <= 128) return total > 0 ? 1 : 0;
  const int wanted = (total + 63) / 64;
  return wanted < kMaxSplits ? wanted : kMaxSplits;
}

// The tiles [first, end) of one active split.
struct TileRange {
  int first;
  int end;
};

__device__ __forceinline__ TileRange split_tiles(int split, int active, int total) {
  const int tiles = (total + kTileTokens - 1) / kTileTokens;
  const int base = tiles / active;
  const int extra = tiles % active;
  const int first = split * base + (split < extra ? split : extra);
  return {first, first + base + (split < extra ? 1 : 0)};
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum). A slot is an index into [8, G].
template <int G>
__device__ __forceinline__ int workspace_row(int split, int slot) {
  return split * kMaxRows * G + slot;
}

}  // namespace grouped
