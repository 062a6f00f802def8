// One block of one split and one row tile, its warps in two roles: four weigh (QK and softmax), four add (PV), one
// chunk behind. Each role has a loop of its own, whose registers are not the other's.
//
// Phase n, from 0 on: the first role weighs chunk n while the second one adds chunk n - 1. Two barriers a phase:
//   first   the chunk's maxima are there; the adding warps have three tiles behind them
//   second  the chunk's weights are there; the maxima have been read, and so have the last chunk's weights
// The last phase has nothing to weigh and no barriers. What is copied is read by the warp that copied it alone: of K
// its tile, a phase later, of V its dimensions, two tiles later.
#pragma once
#include "audit_barrier.h"
#include "split.cuh"

namespace grouped {
namespace direct {

constexpr int kRoleThreads = 2 * kThreads;
constexpr int kTilesBeforeMaxima = 3;  // of a chunk's four: QK takes the longer part of a phase
constexpr int kValueTiles = 2;         // fetched ahead
constexpr int kKnownPlaces = 16;       // tiles: those of the two chunks ahead and of the two that are at work

template <int D>
struct RoleMemory {
  TokenRow<D> k[2][kChunkTokens];            // of this chunk and of the next one
  TokenRow<D> v[kValueTiles * kTileTokens];  // a ring of tiles
  ChunkWeights weights[2];
  TileValues tile_max;
  TilePlaces places[kKnownPlaces];  // of tile first + i at i mod 16; looked up for K, and later on used for V too
  uint4 q[D / 16][32];  // as A fragments: one lane's four registers
  alignas(16) audit::Barrier meeting;
};

template <int D>
constexpr int role_memory_bytes = (2 * kChunkTokens + kValueTiles * kTileTokens) * (D + 16) +
                                  2 * kChunkWeightsBytes + kTileValuesBytes + 16 * kKnownPlaces + 32 * D + 16;

// Both roles meet here, each from a loop of its own. Not at __syncthreads: all threads of a block must come to one and
// the same, while an object only counts who comes, from wherever.
constexpr int kMeeting = 1;

template <class Memory>
__device__ __forceinline__ void start_meeting(Memory& m) {
  if (threadIdx.x == 0) m.meeting.start(kMeeting, kRoleThreads);
  __syncthreads();
}

template <class Memory>
__device__ __forceinline__ void meet(const Memory& m) {
  m.meeting.sync();
}

// q of 16 slots as A fragments, by all warps of the block.
template <int G, int D>
__device__ __forceinline__ void store_queries(uint4 (&q)[D / 16][32], const paged::Inputs& in, int first_slot) {
  for (int step = threadIdx.x / 32; step < D / 16; step += kRoleThreads / 32) {
    unsigned registers[4];
    load_query<G, D>(registers, in, first_slot, step);
    q[step][threadIdx.x % 32] = make_uint4(registers[0], registers[1], registers[2], registers[3]);
  }
}

// What both roles know of their block.
template <int Halves>
struct Block {
  Sight<Halves> sight;
  int first;  // tiles
  int end;    // as far as a row of the block sees
  int total;
  int load_bytes;
  int dense;
};

// The products of one step for the 32 tokens of a tile, q and K from shared memory.
template <int D>
__device__ __forceinline__ void multiply_step(float (&t)[4][4], const uint4* q, const TokenRow<D>* keys, int step) {
  const int lane = threadIdx.x % 32;
  unsigned queries[4];
  load_registers(queries, q + 32 * step);
  unsigned words[4];
  if constexpr (kWordsOfKeys) audit::load_matrices<false>(words, keys[lane] + step);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned operand[2];
    if constexpr (kWordsOfKeys) {
      operand[0] = decode_low(words[j]);
      operand[1] = decode_high(words[j]);
    } else {
      load_keys(operand, keys[8 * j + lane / 4], step);
    }
    audit::product_m16n8k16(t[j], queries, operand, zero);
  }
}

// sum_products with q and K from shared memory. StepsAtOnce: of the code; where it is not all of them the second
// step's c is +0 and the last one's is dropped afterwards.
template <int D, int Elements, int StepsAtOnce>
__device__ __forceinline__ void sum_shared_products(float (&sum)[4][4], const uint4* q, const TokenRow<D>* keys) {
  constexpr int steps = D / 16;
  constexpr bool rolled = StepsAtOnce < steps;
  float compensation[4][Elements] = {};
  float t[4][4];
  multiply_step<D>(t, q, keys, 0);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int e = 0; e < Elements; ++e) kahan_add<steps>(sum[j][e], compensation[j][e], t[j][e], 0);
  }
#pragma unroll StepsAtOnce
  for (int step = 1; step < steps; ++step) {
    multiply_step<D>(t, q, keys, step);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) {
        kahan_add<steps>(sum[j][e], compensation[j][e], t[j][e], rolled ? 2 : step);
      }
    }
  }
}

// The role of warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves, int StepsAtOnce>
__device__ __forceinline__ void weigh_chunks(RoleMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                             int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  audit::CopyQueue copies;
  const auto find = [&](int tile) {
    TilePlaces places = {};
    if (tile < block.end) places = find_tile<Page>(in, tile * kTileTokens, block.total);
    return places;
  };
  const auto tell = [&](int tile, const TilePlaces& places) {
    if (threadIdx.x % 32 == 0) m.places[static_cast<unsigned>(tile - block.first) % kKnownPlaces] = places;
  };
  const auto copy = [&](int tile, int parity, const TilePlaces& places) {
    if (tile < block.end) {
      copy_tile<D>(copies, &m.k[parity][warp * kTileTokens], in.k, places, block.load_bytes, tile * kTileTokens,
                   block.dense, block.total);
    }
    copies.commit();
  };
  TilePlaces next = find(block.first + warp);
  copy(block.first + warp, 0, next);
  tell(block.first + warp, next);
  next = find(block.first + kChunkTiles + warp);
  tell(block.first + kChunkTiles + warp, next);
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  meet(m);

  int parity = 0;
#pragma unroll 1
  for (int tile = block.first + warp; tile < block.end + warp; tile += kChunkTiles) {
    const bool working = tile < block.end;
    copy(tile + kChunkTiles, parity ^ 1, next);
    float score[4][4];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.sight.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.sight.own[half] - tile * kTileTokens;
    copies.wait<1>();
    __syncwarp();  // the warp's K is there
    if (working) {
      sum_shared_products<D, 2 * Halves, StepsAtOnce>(score, &m.q[0][threadIdx.x % 32],
                                                      &m.k[parity][warp * kTileTokens]);
      scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_tile(m.tile_max, warp);
    }
    meet(m);  // and has been read
    next = find(tile + 2 * kChunkTiles);

    float before[Halves];
    advance_max(m.tile_max, warp, before, row_max);
    if (working) {
      weigh<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
    } else {
      skip_sums(m.weights[parity], warp);
    }
    tell(tile + 2 * kChunkTiles, next);
    parity ^= 1;
    meet(m);
  }
}

// The role of warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void add_chunks(RoleMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                           int warp, Numerator<D>& out, float (&row_sum)[Halves]) {
  constexpr int pieces = 2 * blocks_of_warp<D>;
  const int lane = threadIdx.x % 32;
  const int first_piece = warp * pieces;
  const bool working = first_piece * 16 < D;
  audit::CopyQueue copies;
  const auto copy = [&](int slot, int tile, const TilePlaces& places) {
    copy_tile<D, pieces>(copies, &m.v[slot * kTileTokens], in.v, places, block.load_bytes, tile * kTileTokens,
                         block.dense, block.total, first_piece);
  };
#pragma unroll 1
  for (int slot = 0; slot < kValueTiles; ++slot) {
    const int tile = block.first + slot;
    if (working && tile < block.end) copy(slot, tile, find_tile<Page>(in, tile * kTileTokens, block.total));
    copies.commit();
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_sum[half] = 0.0f;
  meet(m);
  if (block.first >= block.end) return;
  meet(m);
  meet(m);

  const uint4* const v = m.v[lane % 16] + first_piece + lane / 16;
  unsigned parity = 0;
  unsigned known = kValueTiles;
#pragma unroll 1
  for (int chunk = block.first; chunk < block.end; chunk += kChunkTiles) {
    const bool last = chunk + kChunkTiles >= block.end;
    const ChunkWeights& weights = m.weights[parity];
    const uint4* p = &weights.tiles[0].p[0][lane];
    const float* rescale = &weights.tiles[0].rescale[lane / 4];
#pragma unroll 1
    for (int i = 0; i < kChunkTiles; i += kValueTiles) {
      const TilePlaces* const next = &m.places[known];
#pragma unroll
      for (int slot = 0; slot < kValueTiles; ++slot) {
        if (slot == kTilesBeforeMaxima % kValueTiles && i + slot == kTilesBeforeMaxima && !last) meet(m);
        const int tile = chunk + i + slot;
        copies.wait<kValueTiles - 1>();
        __syncwarp();  // the tile's V is there
        if (working && tile < block.end) {
          add_tile<D, Halves>(out, p + slot * (sizeof(TileWeights) / sizeof(uint4)),
                              rescale + slot * (sizeof(TileWeights) / sizeof(float)),
                              v + slot * kTileTokens * (sizeof(TokenRow<D>) / sizeof(uint4)));
        }
        __syncwarp();  // and has been read
        if (working && tile + kValueTiles < block.end) copy(slot, tile + kValueTiles, next[slot]);
        copies.commit();
      }
      p += kValueTiles * (sizeof(TileWeights) / sizeof(uint4));
      rescale += kValueTiles * (sizeof(TileWeights) / sizeof(float));
      known = (known + kValueTiles) % kKnownPlaces;
    }
    if (warp == 0) advance_sum(weights, row_sum, block.end - chunk);
    parity ^= 1;
    if (!last) meet(m);
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum). Halves = 1: slots 8 to 15 of the row tile are
// padding.
template <int G, int D, int Page, int Halves, int StepsAtOnce>
__device__ __forceinline__ void run_roles(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                          int total, int first_slot, float* partial, float* lse) {
  using Memory = RoleMemory<D>;
  static_assert(sizeof(Memory) == role_memory_bytes<D>, "the launch uses the formula");
  extern __shared__ uint4 chunk_memory[];
  Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

  const int warp = warp_number();
  const int lane = threadIdx.x % 32;
  Block<Halves> block;
  block.sight = find_sight<G, Halves>(lengths, first_slot);
  const int seen_tiles = (block.sight.longest + kTileTokens - 1) / kTileTokens;
  block.first = tiles.first;
  block.end = tiles.end < seen_tiles ? tiles.end : seen_tiles;
  block.total = total;
  block.load_bytes = aligned_load(in);
  block.dense = dense_tokens<D>(in, block.load_bytes, total);
  start_meeting(m);
  store_queries<G, D>(m.q, in, first_slot);

  const int slots = in.rows * G - first_slot;
  const int workspace = workspace_row<G>(blockIdx.x, first_slot);
  float state[Halves];  // max or sum
  if (warp < kWarps) {
    weigh_chunks<D, Page, Halves, StepsAtOnce>(m, in, block, warp, state);
  } else {
    Numerator<D> out = {};
    add_chunks<D, Page, Halves>(m, in, block, warp - kWarps, out, state);
    store_numerator<D, Halves, true>(out, warp - kWarps, in.v_scale, slots, partial + workspace * D);
  }
  if (warp % kWarps != 0 || lane % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = lane / 4 + 8 * half;
    if (slot < slots) lse[(workspace + slot) * 2 + warp / kWarps] = state[half];
  }
}

// Block (split, row tile). Active splits and slots < rows * G are written, nothing else.
template <int G, int D, int Page, int StepsAtOnce = D / 16>
__device__ __forceinline__ void run_split_in_roles(const paged::Inputs& in, float* partial, float* lse) {
  const int split = blockIdx.x;
  const Lengths lengths = load_lengths(in.lengths, in.rows);
  const int total = total_tokens(lengths);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int first_slot = blockIdx.y * kTileRows;
  if (in.rows * G - first_slot > 8) {
    run_roles<G, D, Page, 2, StepsAtOnce>(in, lengths, tiles, total, first_slot, partial, lse);
  } else {
    run_roles<G, D, Page, 1, StepsAtOnce>(in, lengths, tiles, total, first_slot, partial, lse);
  }
}

}  // namespace direct
}  // namespace grouped
