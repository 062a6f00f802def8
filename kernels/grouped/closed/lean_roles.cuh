// One block of one split and one row tile, its warps in the two roles of warp_roles.cuh. The producer warps make all
// copies: the consumer warps look up nothing and wait for no copy.
//
// In phase n, from 0 on, the producers make the weights of chunk n while the consumers use those of chunk n - 1. Two
// barriers a phase:
//   first   the maxima of chunk n are there; tiles 0 to 2 of chunk n - 1 have been consumed, and V of its tile 3 is
//           there
//   second  the weights of chunk n are there, and V of its tiles 0 to 2; the maxima have been read; chunk n - 1 has
//           been consumed
// The last phase has no work for the producers and only the first barrier. Warp w copies whole rows of its own tile: K
// once it has the scores; V of tiles 0 and 1, which have two buffers, at the beginning of the phase; V of tile 2
// between the barriers; V of tile 3 at the beginning of the next phase.
#pragma once
#include "audit_keep.h"
#include "../direct/swizzled.cuh"
#include "../direct/warp_roles.cuh"

namespace grouped::direct {

constexpr int kDoubleTiles = 2;  // of a chunk, whose V has two buffers
constexpr int kLateTile = kTilesBeforeMaxima;  // copied while the tiles before it are consumed
constexpr int kValueBuffers = kChunkTiles + kDoubleTiles;
static_assert(kLateTile == kChunkTiles - 1 && kDoubleTiles < kLateTile, "one tile of each of the other kinds");

template <int D>
struct LeanMemory {
  SwizzledRow<D> k[kChunkTokens];
  SwizzledRow<D> v[kValueBuffers * kTileTokens];
  ChunkWeights weights[2];
  TileValues tile_max;
  Queries<D> q;
  alignas(16) audit::Barrier roles_barrier;
};

template <int D>
constexpr int lean_memory_bytes = (kChunkTokens + kValueBuffers * kTileTokens) * D + 2 * kChunkWeightsBytes +
                                  kTileValuesBytes + 32 * D + 16;

// The compensated sum of the products of steps First to End - 1, of all D / 16.
template <int D, int Elements, int First, int End>
__device__ __forceinline__ void sum_steps(float (&sum)[4][4], float (&compensation)[4][Elements],
                                          const Queries<D>& q, const SwizzledRow<D>* keys) {
  int lane = threadIdx.x % 32;
  audit::keep(lane);  // otherwise the eight addresses that follow from it stay in registers through all phases
#pragma unroll
  for (int step = First; step < End; ++step) {
    float t[4][4];
    multiply_swizzled<D>(t, q, keys, step, lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) kahan_add<D / 16>(sum[j][e], compensation[j][e], t[j][e], step);
    }
  }
}

// The first row of V of a chunk's tile. Two buffers: of even and of odd chunks.
__device__ __forceinline__ int value_row(int tile, int parity) {
  return kTileTokens * (tile < kDoubleTiles ? 2 * tile + parity : tile + kDoubleTiles);
}

// Producer warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void produce_and_copy(LeanMemory<D>& m, const paged::Inputs& in,
                                                 const Block<Halves>& block, int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  audit::CopyQueue copies;
  const auto copy = [&](SwizzledRow<D>* to, const paged::Storage& storage, int tile, const TileAddress& address) {
    if (tile < block.end) {
      copy_swizzled<D>(copies, to, storage, address, block.load_bytes, tile * kTileTokens, block.dense, block.total);
    }
  };
  SwizzledRow<D>* const keys = &m.k[warp * kTileTokens];
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  TileAddress last = {};
  TileAddress address = find_tile<Page>(in, block.first + warp, block);
  copy(keys, in.k, block.first + warp, address);
  copies.commit();
  copies.wait<0>();
  sync_roles(m);
  if (block.first >= block.end) return;

  int parity = 0;
  int tile = block.first + warp;
#pragma unroll 1
  while (true) {
    const bool has_tile = tile < block.end;
    const bool late = warp == kLateTile;
    TileAddress of_values = address;
    if (late) of_values = last;
    if (late ? tile > block.first + warp : warp < kDoubleTiles) {
      copy(m.v + value_row(warp, parity), in.v, late ? tile - kChunkTiles : tile, of_values);
    }
    copies.commit();
    if (tile >= block.end + warp) break;
    const TileAddress next = find_tile<Page>(in, tile + kChunkTiles, block);

    float score[4][4];
    float compensation[4][2 * Halves];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.visible.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - tile * kTileTokens;
    if (has_tile) {
      sum_steps<D, 2 * Halves, 0, D / 16>(score, compensation, m.q, keys);
      __syncwarp();  // K has been read
      copy(keys, in.k, tile + kChunkTiles, next);
      scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_scores(m.tile_max, warp);
    }
    copies.commit();
    copies.wait<1>();  // for V
    sync_roles(m);

    if (warp >= kDoubleTiles && !late) copy(m.v + value_row(warp, parity), in.v, tile, address);
    copies.commit();
    float before[Halves];
    advance_max(m.tile_max, warp, before, row_max);
    if (has_tile) {
      store_weights<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
    } else {
      skip_sums(m.weights[parity], warp);
    }
    last = address;
    address = next;
    parity ^= 1;
    tile += kChunkTiles;
    copies.wait<0>();
    sync_roles(m);
  }
  copies.wait<0>();
  sync_roles(m);
}

// Tiles First to End - 1 of a chunk, as far as it has `count` tiles.
template <int D, int Halves, int First, int End>
__device__ __forceinline__ void accumulate_tiles(Numerator<D>& out, const LeanMemory<D>& m, int first_vector,
                                                 int parity, int count) {
  const int lane = threadIdx.x % 32;
  const auto accumulate = [&](int tile) {
    const TileWeights& weights = m.weights[parity].tiles[tile];
    accumulate_swizzled<D, Halves>(out, &weights.p[0][lane], &weights.rescale[lane / 4],
                                   m.v + value_row(tile, parity), first_vector);
  };
  const int end = count < End ? count : End;
#pragma unroll 1
  for (int tile = First; tile < end; ++tile) accumulate(tile);
}

// Consumer warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles. Before: how many tiles of a chunk are
// consumed ahead of a phase's first barrier. Openings: how many barriers come before the weights of the first chunk.
template <int D, int Halves, int Before, int Openings>
__device__ __forceinline__ void consume_only(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                         Numerator<D>& out, float (&row_sum)[Halves]) {
  const int first_vector = warp * 2 * slices_of_warp<D>;
  const bool has_slice = first_vector * 16 < D;
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_sum[half] = 0.0f;
  sync_roles(m);
  if (block.first >= block.end) return;
#pragma unroll
  for (int i = 1; i < Openings; ++i) sync_roles(m);

  int parity = 0;
#pragma unroll 1
  for (int chunk = block.first; chunk < block.end; chunk += kChunkTiles) {
    const int count = block.end - chunk;
    if (has_slice) accumulate_tiles<D, Halves, 0, Before>(out, m, first_vector, parity, count);
    sync_roles(m);
    if (has_slice) accumulate_tiles<D, Halves, Before, kChunkTiles>(out, m, first_vector, parity, count);
    if (warp == 0) advance_sum(m.weights[parity], row_sum, count);
    parity ^= 1;
    if (count > kChunkTiles) sync_roles(m);
  }
}

// The roles of this header; even_roles.cuh has others.
struct LeanRoles {
  template <int D, int Page, int Halves>
  __device__ __forceinline__ static void produce_chunks(LeanMemory<D>& m, const paged::Inputs& in,
                                                      const Block<Halves>& block, int warp,
                                                      float (&row_max)[Halves]) {
    produce_and_copy<D, Page, Halves>(m, in, block, warp, row_max);
  }

  template <int D, int Halves>
  __device__ __forceinline__ static void consume_chunks(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                                    Numerator<D>& out, float (&row_sum)[Halves]) {
    consume_only<D, Halves, kLateTile, 3>(m, block, warp, out, row_sum);
  }
};

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum).
template <class Roles, int G, int D, int Page>
struct RolesThatCopy {
  template <int Halves>
  __device__ __forceinline__ static void run(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                             int total, int first_slot, float* partial, float* lse) {
    using Memory = LeanMemory<D>;
    static_assert(sizeof(Memory) == lean_memory_bytes<D>, "the launch uses the formula");
    extern __shared__ uint4 chunk_memory[];
    Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

    const int warp = warp_number();
    const int lane = threadIdx.x % 32;
    const Block<Halves> block = find_block<G, D, Halves>(in, lengths, tiles, total, first_slot);
    init_roles_barrier(m);
    store_queries<G, D>(m.q, in, first_slot);

    const int slots = in.rows * G - first_slot;
    const int workspace = workspace_row<G>(blockIdx.x, first_slot);
    float state[Halves];  // max or sum
    if (warp < kWarps) {
      Roles::template produce_chunks<D, Page>(m, in, block, warp, state);
    } else {
      Numerator<D> out = {};
      Roles::template consume_chunks<D>(m, block, warp - kWarps, out, state);
      store_numerator<D, Halves, true>(out, warp - kWarps, in.v_scale, slots, partial + workspace * D);
    }
    if (warp % kWarps != 0 || lane % 4 != 0) return;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const int slot = lane / 4 + 8 * half;
      if (slot < slots) lse[(workspace + slot) * 2 + warp / kWarps] = state[half];
    }
  }
};

}  // namespace grouped::direct
