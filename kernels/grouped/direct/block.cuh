// What one block of the direct family works on: the tiles of a split, a 16-row tile of slots, and what its rows see.
#pragma once
#include "chunk.cuh"

namespace grouped::direct {

// All row lengths, in registers. They are loaded at once, since each load by itself takes hundreds of cycles.
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

// How many tokens the rows of a row tile see. Padding sees as many as the longest row: its results are not stored.
template <int Halves>
struct Visibility {
  int longest;
  int shortest;
  int own[Halves];  // of this lane's rows
};

template <int G, int Halves>
__device__ __forceinline__ Visibility<Halves> find_visibility(const Lengths& lengths, int first_slot) {
  const int first_row = first_slot / G;
  const int last_row = (first_slot + 8 * Halves - 1) / G;
  Visibility<Halves> found;
  found.longest = 0;
  found.shortest = 0x7FFFFFFF;
#pragma unroll
  for (int row = 0; row < kMaxRows; ++row) {
    if (row < first_row || row > last_row || row >= lengths.rows) continue;
    const int length = lengths.of_row[row];
    found.longest = length > found.longest ? length : found.longest;
    found.shortest = length < found.shortest ? length : found.shortest;
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int own_row = (first_slot + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half) / G;
    found.own[half] = found.longest;
#pragma unroll
    for (int row = 0; row < kMaxRows; ++row) {
      if (row == own_row && row < lengths.rows) found.own[half] = lengths.of_row[row];
    }
  }
  return found;
}

template <int Halves>
struct Block {
  Visibility<Halves> visible;
  int first;  // tiles [first, end): those of the split that a row of the block sees
  int end;
  int total;
  int load_bytes;  // of the widest load
  int dense;       // up to this token whole tiles are dense: the rows of a page follow each other without a gap
};

template <int G, int D, int Halves>
__device__ __forceinline__ Block<Halves> find_block(const paged::Inputs& in, const Lengths& lengths,
                                                    const TileRange& tiles, int total, int first_slot) {
  Block<Halves> block;
  block.visible = find_visibility<G, Halves>(lengths, first_slot);
  const int visible_tiles = (block.visible.longest + kTileTokens - 1) / kTileTokens;
  block.first = tiles.first;
  block.end = tiles.end < visible_tiles ? tiles.end : visible_tiles;
  block.total = total;
  block.load_bytes = paged::widest_load(in);
  block.dense = block.load_bytes == 16 && in.k.token_stride == D && in.v.token_stride == D ? total : 0;
  return block;
}

// Where the two 16-token groups of a tile lie.
struct __align__(16) TileAddress {
  int physical_page[2];
  int position[2];
};

// Nothing is looked up for a token >= total.
template <int Page>
__device__ __forceinline__ TileAddress look_up(const paged::Inputs& in, int first_token, int total) {
  const int page = Page > 0 ? Page : in.page;
  TileAddress address;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int token = first_token + i * kGroupTokens;
    const int logical_page = token / page;
    address.position[i] = token - logical_page * page;
    address.physical_page[i] = token < total ? in.table[logical_page] : 0;
  }
  return address;
}

// Nor for a tile past the end of the block.
template <int Page, int Halves>
__device__ __forceinline__ TileAddress find_tile(const paged::Inputs& in, int tile, const Block<Halves>& block) {
  return tile < block.end ? look_up<Page>(in, tile * kTileTokens, block.total) : TileAddress{};
}

// Block (split, row tile). Active splits and slots < rows * G are written, nothing else. Kernel::run<Halves> serves
// the block; with Halves = 1, slots 8 to 15 of its row tile are padding.
template <class Kernel, int G, int D>
__device__ __forceinline__ void run_split(const paged::Inputs& in, float* partial, float* lse) {
  const int split = blockIdx.x;
  const Lengths lengths = load_lengths(in.lengths, in.rows);
  const int total = total_tokens(lengths);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int first_slot = blockIdx.y * kTileRows;
  if (in.rows * G - first_slot > 8) {
    Kernel::template run<2>(in, lengths, tiles, total, first_slot, partial, lse);
  } else {
    Kernel::template run<1>(in, lengths, tiles, total, first_slot, partial, lse);
  }
}

}  // namespace grouped::direct
