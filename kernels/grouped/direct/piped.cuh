// One block of one split and one row tile, its warps in two roles: four weigh (QK and softmax), four add (PV). A tile's
// weights and its V go from the one to the other through a place of a ring, and each place has two barriers:
//   full    the warp that weighs the tile arrives, and those that add wait: weights and V are there
//   empty   those that add arrive, and the warp that weighs the tile kPlaces later waits: V has been read, and so have
//           the weights, of which there are more
// The weighing warps have a barrier of their own, once a chunk: its maxima are there. Nothing else is waited for, so
// that a role runs ahead of the other as far as the ring goes.
//
// Warp w weighs tile w of each chunk and copies whole rows for it, once it has the scores: K of the next chunk, V of
// this one.
#pragma once
#include "audit_barrier.h"
#include "roles.cuh"
#include "swizzled.cuh"

namespace grouped {
namespace direct {

constexpr int kPlaces = 6;       // of tiles; two chunks would not fit twice on an SM
constexpr int kStepsAtOnce = 2;  // of the code of QK: all of it does not stay in the instruction cache
static_assert(kPlaces <= 2 * kChunkTiles, "who has read V of a tile has read the weights of the tile two chunks ago");

// Numbers of barriers, and who comes.
constexpr int kFull = 1;  // + place
constexpr int kEmpty = kFull + kPlaces;
constexpr int kMaxima = kEmpty + kPlaces;
constexpr int kTileThreads = 32 + kThreads;  // one warp that weighs, all that add

struct Ring {
  audit::Barrier full[kPlaces];
  audit::Barrier empty[kPlaces];
};

template <int D>
struct PipedMemory {
  WholeRow<D> k[kChunkTokens];
  WholeRow<D> v[kPlaces * kTileTokens];
  ChunkWeights weights[2];  // of even and of odd chunks
  TileValues tile_max[2];
  uint4 q[D / 16][32];  // as A fragments: one lane's four registers
  Ring ring;
};

template <int D>
constexpr int piped_memory_bytes = (kChunkTokens + kPlaces * kTileTokens) * D + 2 * kChunkWeightsBytes +
                                   2 * kTileValuesBytes + 32 * D + 16 * kPlaces;

// The compensated sum of the products of all steps, as a loop: each step's products ahead of the sum of the ones
// before, for which they need not wait. The first step gives s = t and c = +0, the last one's c is dropped.
template <int D, int Elements>
__device__ __forceinline__ void sum_rolled_steps(float (&sum)[4][4], const uint4 (&q)[D / 16][32],
                                                 const WholeRow<D>* keys) {
  constexpr int steps = D / 16;
  const int lane = threadIdx.x % 32;
  float compensation[4][Elements] = {};
  float t[4][4];
  const auto add = [&](int step) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) kahan_add<steps>(sum[j][e], compensation[j][e], t[j][e], step);
    }
  };
  multiply_swizzled<D>(t, q, keys, 0, lane);
  add(0);
  multiply_swizzled<D>(t, q, keys, 1, lane);
#pragma unroll kStepsAtOnce
  for (int step = 2; step < steps; ++step) {
    float next[4][4];
    multiply_swizzled<D>(next, q, keys, step, lane);
    add(2);  // as in the middle
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) t[j][e] = next[j][e];
    }
  }
  add(steps - 1);
}

// The role of warps 0 to 3: one tile a warp and chunk. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void weigh_tiles(PipedMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                            int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  WholeRow<D>* const keys = &m.k[warp * kTileTokens];
  audit::CopyQueue copies;
  const auto find = [&](int tile) {
    TilePlaces places = {};
    if (tile < block.end) places = find_tile<Page>(in, tile * kTileTokens, block.total);
    return places;
  };
  const auto copy = [&](WholeRow<D>* to, const paged::Storage& storage, int tile, const TilePlaces& places) {
    copy_swizzled<D>(copies, to, storage, places, block.load_bytes, tile * kTileTokens, block.dense, block.total);
  };
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  TilePlaces places = find(block.first + warp);
  if (block.first + warp < block.end) copy(keys, in.k, block.first + warp, places);
  copies.commit();
  copies.wait<0>();

  int parity = 0;
  int place = warp;
#pragma unroll 1
  for (int tile = block.first + warp; tile < block.end + warp; tile += kChunkTiles) {
    const bool working = tile < block.end;
    const TilePlaces next = find(tile + kChunkTiles);
    float score[4][4];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.sight.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.sight.own[half] - tile * kTileTokens;
    if (working) {
      __syncwarp();  // the warp's K is there
      sum_rolled_steps<D, 2 * Halves>(score, m.q, keys);
      __syncwarp();  // and has been read
      if (tile + kChunkTiles < block.end) copy(keys, in.k, tile + kChunkTiles, next);
      if (tile - block.first >= kPlaces) m.ring.empty[place].sync();
      copy(&m.v[place * kTileTokens], in.v, tile, places);
      copies.commit();
      scale_scores<Halves>(m.tile_max[parity], warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_tile(m.tile_max[parity], warp);
    }
    audit::barrier_sync(kMaxima, kThreads);

    float before[Halves];
    advance_max(m.tile_max[parity], warp, before, row_max);
    if (working) {
      weigh<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
      copies.wait<0>();
      m.ring.full[place].arrive();
    }
    places = next;
    parity ^= 1;
    place += place + kChunkTiles < kPlaces ? kChunkTiles : kChunkTiles - kPlaces;
  }
}

// The role of warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles in turn. Warp 0 has the row sums besides,
// lane l that of slot l modulo their number.
template <int D, int Halves>
__device__ __forceinline__ void add_weighed_tiles(const PipedMemory<D>& m, const Block<Halves>& block, int warp,
                                                  Numerator<D>& out, float& row_sum) {
  const int lane = threadIdx.x % 32;
  const int slot = lane % (8 * Halves);
  const int first_piece = warp * 2 * blocks_of_warp<D>;
  const bool working = D >= 32 * kWarps || first_piece * 16 < D;
  const int count = block.end - block.first;
  row_sum = 0.0f;

  int place = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int tile = i % kChunkTiles;
    const ChunkWeights& chunk = m.weights[i / kChunkTiles % 2];
    const TileWeights& weights = chunk.tiles[tile];
    m.ring.full[place].sync();
    if (working) {
      add_swizzled<D, Halves>(out, &weights.p[0][lane], &weights.rescale[lane / 4], &m.v[place * kTileTokens],
                              first_piece);
    }
    if (warp == 0) row_sum = __fmaf_rn(row_sum, weights.rescale[slot], chunk.tile_sum[slot][tile]);
    if (i + kPlaces < count) m.ring.empty[place].arrive();
    place = place + 1 < kPlaces ? place + 1 : 0;
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum). Halves = 1: slots 8 to 15 of the row tile are
// padding.
template <int G, int D, int Page, int Halves>
__device__ __forceinline__ void run_piped_roles(const paged::Inputs& in, const Lengths& lengths,
                                                const TileRange& tiles, int total, int first_slot, float* partial,
                                                float* lse) {
  using Memory = PipedMemory<D>;
  static_assert(sizeof(Memory) == piped_memory_bytes<D>, "the launch uses the formula");
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
  store_queries<G, D>(m.q, in, first_slot);
  if (threadIdx.x < kPlaces) {
    m.ring.full[threadIdx.x].start(kFull + threadIdx.x, kTileThreads);
    m.ring.empty[threadIdx.x].start(kEmpty + threadIdx.x, kTileThreads);
  }
  __syncthreads();  // q is there, and the ring

  const int slots = in.rows * G - first_slot;
  const int workspace = workspace_row<G>(blockIdx.x, first_slot);
  float* const own_lse = lse + workspace * 2;
  if (warp < kWarps) {
    float row_max[Halves];
    weigh_tiles<D, Page, Halves>(m, in, block, warp, row_max);
    if (warp != 0 || lane % 4 != 0) return;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const int slot = lane / 4 + 8 * half;
      if (slot < slots) own_lse[slot * 2] = row_max[half];
    }
  } else {
    Numerator<D> out = {};
    float row_sum;
    add_weighed_tiles<D, Halves>(m, block, warp - kWarps, out, row_sum);
    store_numerator<D, Halves, true>(out, warp - kWarps, in.v_scale, slots, partial + workspace * D);
    if (warp == kWarps && lane < 8 * Halves && lane < slots) own_lse[lane * 2 + 1] = row_sum;
  }
}

// Block (split, row tile). Active splits and slots < rows * G are written, nothing else.
template <int G, int D, int Page>
__device__ __forceinline__ void run_split_in_piped_roles(const paged::Inputs& in, float* partial, float* lse) {
  const int split = blockIdx.x;
  const Lengths lengths = load_lengths(in.lengths, in.rows);
  const int total = total_tokens(lengths);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int first_slot = blockIdx.y * kTileRows;
  if (in.rows * G - first_slot > 8) {
    run_piped_roles<G, D, Page, 2>(in, lengths, tiles, total, first_slot, partial, lse);
  } else {
    run_piped_roles<G, D, Page, 1>(in, lengths, tiles, total, first_slot, partial, lse);
  }
}

}  // namespace direct
}  // namespace grouped
