// One block of one split and one row tile, its warps in two roles: four producer warps make weights (QK and softmax),
// four consumer warps multiply them with V (PV), one chunk behind. Each role has a loop of its own, whose registers do
// not count for the other.
//
//   phase        0              1                    2                    (two chunks)
//   producers    chunk 0   A B  chunk 1         A B
//   consumers              A B  chunk 0         A B  chunk 1
//
// The roles meet at two barriers a phase:
//   A   the maxima of the chunk are there; the consumers are past three tiles
//   B   the weights of the chunk are there; the maxima and the weights of the last chunk have been read
// The last phase has no work for the producers and no barriers. Only the warp that copies data reads it: K of its tile,
// a phase later; V of its dimensions, two tiles later.
#pragma once
#include "audit_barrier.h"
#include "padded.cuh"
#include "row_sums.cuh"
#include "weights.cuh"

namespace grouped::direct {

constexpr int kTilesBeforeMaxima = 3;  // of a chunk's four: QK takes the longer part of a phase
constexpr int kValueTiles = 2;         // fetched ahead
constexpr int kAddresses = 16;         // of the tiles of the two chunks ahead and of the two that are at work

template <int D>
struct RoleMemory {
  PaddedRow<D> k[2][kChunkTokens];            // of this chunk and of the next one
  PaddedRow<D> v[kValueTiles * kTileTokens];  // tiles in turn
  ChunkWeights weights[2];
  TileValues tile_max;
  TileAddress addresses[kAddresses];  // of tile first + i at i mod 16: found for K, and used for V later
  Queries<D> q;
  alignas(16) audit::Barrier roles_barrier;
};

template <int D>
constexpr int role_memory_bytes = (2 * kChunkTokens + kValueTiles * kTileTokens) * (D + 16) +
                                  2 * kChunkWeightsBytes + kTileValuesBytes + 16 * kAddresses + 32 * D + 16;

// Both roles meet here, each from a loop of its own. It cannot be __syncthreads: all threads of a block must reach the
// same one, while a Barrier only counts arrivals.
constexpr int kRolesBarrier = 1;

template <class Memory>
__device__ __forceinline__ void init_roles_barrier(Memory& m) {
  if (threadIdx.x == 0) m.roles_barrier.start(kRolesBarrier, kRoleThreads);
  __syncthreads();
}

template <class Memory>
__device__ __forceinline__ void sync_roles(const Memory& m) {
  m.roles_barrier.sync();
}

// Producer warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves, int StepsAtOnce>
__device__ __forceinline__ void produce_chunks(RoleMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                               int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  audit::CopyQueue copies;
  const auto publish = [&](int tile, const TileAddress& address) {
    if (threadIdx.x % 32 == 0) m.addresses[static_cast<unsigned>(tile - block.first) % kAddresses] = address;
  };
  const auto copy = [&](int tile, int parity, const TileAddress& address) {
    if (tile < block.end) {
      copy_padded<D>(copies, &m.k[parity][warp * kTileTokens], in.k, address, block.load_bytes, tile * kTileTokens,
                     block.dense, block.total);
    }
    copies.commit();
  };
  TileAddress next = find_tile<Page>(in, block.first + warp, block);
  copy(block.first + warp, 0, next);
  publish(block.first + warp, next);
  next = find_tile<Page>(in, block.first + kChunkTiles + warp, block);
  publish(block.first + kChunkTiles + warp, next);
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  sync_roles(m);

  int parity = 0;
#pragma unroll 1
  for (int tile = block.first + warp; tile < block.end + warp; tile += kChunkTiles) {
    const bool has_tile = tile < block.end;
    copy(tile + kChunkTiles, parity ^ 1, next);
    float score[4][4];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.visible.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - tile * kTileTokens;
    copies.wait<1>();
    __syncwarp();  // the warp's K is there
    if (has_tile) {
      sum_shared_products<D, 2 * Halves, StepsAtOnce>(score, &m.q[0][threadIdx.x % 32],
                                                      &m.k[parity][warp * kTileTokens]);
      scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_scores(m.tile_max, warp);
    }
    sync_roles(m);  // and has been read
    next = find_tile<Page>(in, tile + 2 * kChunkTiles, block);

    float before[Halves];
    advance_max(m.tile_max, warp, before, row_max);
    if (has_tile) {
      store_weights<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
    } else {
      skip_sums(m.weights[parity], warp);
    }
    publish(tile + 2 * kChunkTiles, next);
    parity ^= 1;
    sync_roles(m);
  }
}

// Consumer warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void consume_chunks(RoleMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                               int warp, Numerator<D>& out, float (&row_sum)[Halves]) {
  constexpr int vectors = 2 * slices_of_warp<D>;
  const int lane = threadIdx.x % 32;
  const int first_vector = warp * vectors;
  const bool has_slice = first_vector * 16 < D;
  audit::CopyQueue copies;
  const auto copy = [&](int slot, int tile, const TileAddress& address) {
    copy_padded<D, vectors>(copies, &m.v[slot * kTileTokens], in.v, address, block.load_bytes, tile * kTileTokens,
                            block.dense, block.total, first_vector);
  };
#pragma unroll 1
  for (int slot = 0; slot < kValueTiles; ++slot) {
    const int tile = block.first + slot;
    if (has_slice && tile < block.end) copy(slot, tile, look_up<Page>(in, tile * kTileTokens, block.total));
    copies.commit();
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_sum[half] = 0.0f;
  sync_roles(m);
  if (block.first >= block.end) return;
  sync_roles(m);
  sync_roles(m);

  const uint4* const v = m.v[lane % 16] + first_vector + lane / 16;
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
      const TileAddress* const next = &m.addresses[known];
#pragma unroll
      for (int slot = 0; slot < kValueTiles; ++slot) {
        if (slot == kTilesBeforeMaxima % kValueTiles && i + slot == kTilesBeforeMaxima && !last) sync_roles(m);
        const int tile = chunk + i + slot;
        copies.wait<kValueTiles - 1>();
        __syncwarp();  // V of the tile is there
        if (has_slice && tile < block.end) {
          accumulate_padded<D, Halves>(out, p + slot * (sizeof(TileWeights) / sizeof(uint4)),
                                       rescale + slot * (sizeof(TileWeights) / sizeof(float)),
                                       v + slot * kTileTokens * (sizeof(PaddedRow<D>) / sizeof(uint4)));
        }
        __syncwarp();  // and has been read
        if (has_slice && tile + kValueTiles < block.end) copy(slot, tile + kValueTiles, next[slot]);
        copies.commit();
      }
      p += kValueTiles * (sizeof(TileWeights) / sizeof(uint4));
      rescale += kValueTiles * (sizeof(TileWeights) / sizeof(float));
      known = (known + kValueTiles) % kAddresses;
    }
    if (warp == 0) advance_sum(weights, row_sum, block.end - chunk);
    parity ^= 1;
    if (!last) sync_roles(m);
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum).
template <int G, int D, int Page, int StepsAtOnce = D / 16>
struct WarpRoles {
  template <int Halves>
  __device__ __forceinline__ static void run(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                             int total, int first_slot, float* partial, float* lse) {
    using Memory = RoleMemory<D>;
    static_assert(sizeof(Memory) == role_memory_bytes<D>, "the launch uses the formula");
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
      produce_chunks<D, Page, Halves, StepsAtOnce>(m, in, block, warp, state);
    } else {
      Numerator<D> out = {};
      consume_chunks<D, Page, Halves>(m, in, block, warp - kWarps, out, state);
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
