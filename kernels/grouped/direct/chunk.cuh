// What one block of `direct_fragments` keeps in shared memory, and how K and V get there: as they lie in storage,
// undecoded, 16 bytes at a time.
#pragma once
#include "../../paged/arithmetic.cuh"
#include "../geometry.cuh"
#include "../panels.cuh"
#include "audit_copy.h"

namespace grouped {
namespace direct {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kChunkTiles = kWarps;  // a chunk has one tile of tokens for each warp
constexpr int kChunkTokens = kChunkTiles * kTileTokens;
constexpr int kGroupTokens = 16;  // page sizes are multiples of it, so that such a group lies in one page

// What PV reads of one tile's weights.
struct TileWeights {
  uint4 p[2][32];  // P and R as A fragments: 16 tokens, one lane's four registers
  uint4 r[2][32];
  float rescale[kTileRows];
};

// A token's row is padded by 16 bytes, so that the words which a warp reads at once lie in different banks: of K
// four in a row of 8 tokens, of V eight in a row of every other token.
template <int D>
using TokenRow = uint4[D / 16 + 1];

// One value for each row and tile of a chunk.
using TileValues = float[kTileRows][kChunkTiles];  // read as float4

struct ChunkWeights {
  TileWeights tiles[kChunkTiles];
  TileValues tile_sum;
};

constexpr int kTileValuesBytes = 4 * kTileRows * kChunkTiles;
constexpr int kChunkWeightsBytes = kChunkTiles * (4 * 32 * 16 + 4 * kTileRows) + kTileValuesBytes;

template <int D>
struct ChunkMemory {
  TokenRow<D> k[kChunkTokens];
  TokenRow<D> v[2][kChunkTokens];  // of this chunk and of the next one
  ChunkWeights weights;
  TileValues tile_max;
};

template <int D>
constexpr int chunk_memory_bytes = 3 * kChunkTokens * (D + 16) + kChunkWeightsBytes + kTileValuesBytes;

// This thread's warp, as a number of which the compiler knows that all its lanes have it.
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(paged::kAllLanes, static_cast<int>(threadIdx.x / 32), 0);
}

// Where the two 16-token groups of a tile lie. Nothing of a tile that is not read is looked up.
struct __align__(16) TilePlaces {
  int physical_page[2];
  int position[2];
};

template <int Page>
__device__ __forceinline__ TilePlaces find_tile(const paged::Inputs& in, int first_token, int total) {
  const int page = Page > 0 ? Page : in.page;
  TilePlaces places;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int token = first_token + i * kGroupTokens;
    const int logical_page = token / page;
    places.position[i] = token - logical_page * page;
    places.physical_page[i] = token < total ? in.table[logical_page] : 0;
  }
  return places;
}

// Up to which token whole tiles are dense: all of them where a page's rows follow each other without a gap, aligned
// to 16 bytes, as in a real cache, else none.
template <int D>
__device__ __forceinline__ int dense_tokens(const paged::Inputs& in, int load_bytes, int total) {
  return load_bytes == 16 && in.k.token_stride == D && in.v.token_stride == D ? total : 0;
}

// One warp: the 32 tokens of K or V from first_token on, to rows of shared memory, whole or Pieces pieces of 16
// dimensions from first_piece on. A token >= total is zeros: it is not read. A dense tile, the case that matters, has
// no arithmetic between its copies.
template <int D, int Pieces = D / 16>
__device__ __forceinline__ void copy_tile(audit::CopyQueue& copies, TokenRow<D>* to, const paged::Storage& storage,
                                          const TilePlaces& places, int load_bytes, int first_token, int dense,
                                          int total, int first_piece = 0) {
  constexpr int rows = 32 / Pieces;  // that a warp copies at once
  static_assert(rows <= kGroupTokens, "of one page");
  const int lane = threadIdx.x % 32;
  const int piece = first_piece + lane % Pieces;
  const int first_row = Pieces == 4 ? lane / 8 + lane / 4 % 2 * 4 : lane / Pieces;  // 8 lanes write to all banks
  if (first_token + kTileTokens <= dense) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned char* const from =
          storage.bytes + static_cast<unsigned>(places.physical_page[i]) * storage.page_stride +
          static_cast<unsigned>((places.position[i] + first_row) * D + piece * 16);
#pragma unroll
      for (int row = 0; row < kGroupTokens; row += rows) {
        copies.copy16(&to[i * kGroupTokens + row + first_row][piece], from + row * D);
      }
    }
    return;
  }
#pragma unroll 1
  for (int row = first_row; row < kTileTokens; row += rows) {
    const bool second = row >= kGroupTokens;
    const int physical_page = second ? places.physical_page[1] : places.physical_page[0];
    const int position = (second ? places.position[1] : places.position[0]) + row % kGroupTokens;
    const unsigned char* const from = paged::token_bytes(storage, physical_page, position) + piece * 16;
    uint4* const place = &to[row][piece];
    const bool read = first_token + row < total;
    if (load_bytes == 16) {
      copies.copy16(place, from, read);
    } else if (!read) {
      *place = make_uint4(0, 0, 0, 0);
    } else {
      *place = load_bytes == 8 ? load_chunk<8>(from) : load_chunk<1>(from);
    }
  }
}

}  // namespace direct
}  // namespace grouped
