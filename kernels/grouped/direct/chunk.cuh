// How the direct family cuts a split: chunks of four tiles, and what one chunk keeps in shared memory for PV.
#pragma once
#include "../../paged/arithmetic.cuh"
#include "../geometry.cuh"
#include "audit_copy.h"

namespace grouped::direct {

constexpr int kWarps = 4;  // of one role; of the block where every warp does the same work
constexpr int kThreads = 32 * kWarps;
constexpr int kRoleThreads = 2 * kThreads;  // of a block with two roles
constexpr int kChunkTiles = kWarps;         // one tile of tokens for each warp
constexpr int kChunkTokens = kChunkTiles * kTileTokens;
constexpr int kGroupTokens = 16;  // page sizes are multiples of it, so such a group lies in one page

// The weights of one tile.
struct TileWeights {
  uint4 p[2][32];  // P and R as A fragments of 16 tokens: the four registers of each lane
  uint4 r[2][32];
  float rescale[kTileRows];
};

// One value for each row and tile of a chunk.
using TileValues = float[kTileRows][kChunkTiles];  // read as float4

struct ChunkWeights {
  TileWeights tiles[kChunkTiles];
  TileValues tile_sum;
};

constexpr int kTileValuesBytes = 4 * kTileRows * kChunkTiles;
constexpr int kChunkWeightsBytes = kChunkTiles * (4 * 32 * 16 + 4 * kTileRows) + kTileValuesBytes;

// The warp's number, which the compiler then knows to be the same in all lanes.
__device__ __forceinline__ int warp_number() {
  return __shfl_sync(paged::kAllLanes, static_cast<int>(threadIdx.x / 32), 0);
}

// Tile copy: one 16-byte vector, by loads of `load_bytes`. One that is not live becomes zeros and is not read.
__device__ __forceinline__ void copy_vector(audit::CopyQueue& copies, uint4* to, const unsigned char* from,
                                            int load_bytes, bool live) {
  if (load_bytes == 16) {
    copies.copy16(to, from, live);
  } else if (!live) {
    *to = make_uint4(0, 0, 0, 0);
  } else {
    *to = load_bytes == 8 ? paged::load_vector<8>(from) : paged::load_vector<1>(from);
  }
}

}  // namespace grouped::direct
