// One block of one split and one row tile, its warps in two roles that pass tiles through a pipeline of kStages stages.
// Producer warp w copies K and V of tile w of each chunk and makes its weights (QK and softmax). The four consumer
// warps multiply the tiles in turn (PV), each in its quarter of the dimensions. A stage holds V of one tile; the
// weights of two chunks lie beside the stages.
//
// Timeline of two chunks, tiles 0 to 7, in 6 stages. Kn, Vn: tile copy; Sn: scores; Wn: weights; |max|: the barrier of
// the producers, after which the maxima of the chunk are known; full n, empty n: arrival at a barrier of stage n;
// [..]: wait.
//
//                chunk 0                          chunk 1
//   producer 0   K0 S0 K4 V0 |max| W0 full 0      S4           V4 |max| W4 full 4
//   producer 1   K1 S1 K5 V1 |max| W1 full 1      S5           V5 |max| W5 full 5
//   producer 2   K2 S2 K6 V2 |max| W2 full 2      S6 [empty 0] V6 |max| W6 full 0
//   producer 3   K3 S3 K7 V3 |max| W3 full 3      S7 [empty 1] V7 |max| W7 full 1
//   consumers                         [full 0] PV0 empty 0  [full 1] PV1 empty 1  [full 2] PV2  ...  [full 1] PV7
//
//   producer_acquire   waits at empty_barrier: V of the tile kStages before has been read, and so have the weights of
//                      the tile two chunks before
//   producer_commit    arrives at full_barrier: weights and V of the tile are there
//   consumer_wait      waits at full_barrier
//   consumer_release   arrives at empty_barrier
//
// Neither role waits for the other elsewhere, so each runs ahead as far as the stages reach. The state of the pipeline
// is the index of the next stage alone: Barrier::sync() arrives and waits for that very phase.
#pragma once
#include "audit_barrier.h"
#include "scores.cuh"
#include "swizzled.cuh"
#include "weights.cuh"

namespace grouped::direct {

constexpr int kStages = 6;       // those of two chunks would not fit twice on an SM
constexpr int kStepsAtOnce = 2;  // of the code of QK: all of it does not stay in the instruction cache
static_assert(kStages <= 2 * kChunkTiles, "a consumer past V of a tile is past the weights of the tile two chunks ago");

// Barriers of the block have numbers from 1 on.
constexpr int kFullBarrier = 1;  // + stage
constexpr int kEmptyBarrier = kFullBarrier + kStages;
constexpr int kMaximaBarrier = kEmptyBarrier + kStages;
constexpr int kTileThreads = 32 + kThreads;  // that handle one tile: a producer warp and all consumers

template <int Stages>
struct TilePipeline {
  audit::Barrier full_barrier[Stages];
  audit::Barrier empty_barrier[Stages];

  // By thread `stage` of the block, ahead of a __syncthreads.
  __device__ __forceinline__ void init(int stage) {
    full_barrier[stage].start(kFullBarrier + stage, kTileThreads);
    empty_barrier[stage].start(kEmptyBarrier + stage, kTileThreads);
  }

  __device__ __forceinline__ void producer_acquire(int stage) const { empty_barrier[stage].sync(); }
  __device__ __forceinline__ void producer_commit(int stage) const { full_barrier[stage].arrive(); }
  __device__ __forceinline__ void consumer_wait(int stage) const { full_barrier[stage].sync(); }
  __device__ __forceinline__ void consumer_release(int stage) const { empty_barrier[stage].arrive(); }
};

template <int D>
struct PipedMemory {
  SwizzledRow<D> k[kChunkTokens];
  SwizzledRow<D> v[kStages * kTileTokens];
  ChunkWeights weights[2];  // of even and of odd chunks
  TileValues tile_max[2];
  Queries<D> q;
  TilePipeline<kStages> pipeline;
};

template <int D>
constexpr int piped_memory_bytes = (kChunkTokens + kStages * kTileTokens) * D + 2 * kChunkWeightsBytes +
                                   2 * kTileValuesBytes + 32 * D + 16 * kStages;

// The compensated sum of the products of all steps, as a loop: the products of a step are issued ahead of the sum of
// those before, and need not wait for it. The first step gives s = t and c = +0; the last one's c is dropped.
template <int D, int Elements>
__device__ __forceinline__ void sum_rolled_steps(float (&sum)[4][4], const Queries<D>& q, const SwizzledRow<D>* keys) {
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

// Producer warps 0 to 3: one tile a warp and chunk. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void produce_tiles(PipedMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                              int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  SwizzledRow<D>* const keys = &m.k[warp * kTileTokens];
  audit::CopyQueue copies;
  const auto copy = [&](SwizzledRow<D>* to, const paged::Storage& storage, int tile, const TileAddress& address) {
    copy_swizzled<D>(copies, to, storage, address, block.load_bytes, tile * kTileTokens, block.dense, block.total);
  };
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  TileAddress address = find_tile<Page>(in, block.first + warp, block);
  if (block.first + warp < block.end) copy(keys, in.k, block.first + warp, address);
  copies.commit();
  copies.wait<0>();

  int parity = 0;  // of the chunk
  int stage = warp;
#pragma unroll 1
  for (int tile = block.first + warp; tile < block.end + warp; tile += kChunkTiles) {
    const bool has_tile = tile < block.end;
    const TileAddress next = find_tile<Page>(in, tile + kChunkTiles, block);
    float score[4][4];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.visible.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - tile * kTileTokens;
    if (has_tile) {
      __syncwarp();  // the warp's K is there
      sum_rolled_steps<D, 2 * Halves>(score, m.q, keys);
      __syncwarp();  // and has been read
      if (tile + kChunkTiles < block.end) copy(keys, in.k, tile + kChunkTiles, next);
      if (tile - block.first >= kStages) m.pipeline.producer_acquire(stage);
      copy(&m.v[stage * kTileTokens], in.v, tile, address);
      copies.commit();
      scale_scores<Halves>(m.tile_max[parity], warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_scores(m.tile_max[parity], warp);
    }
    audit::barrier_sync(kMaximaBarrier, kThreads);

    float before[Halves];
    advance_max(m.tile_max[parity], warp, before, row_max);
    if (has_tile) {
      store_weights<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
      copies.wait<0>();
      m.pipeline.producer_commit(stage);
    }
    address = next;
    parity ^= 1;
    stage += stage + kChunkTiles < kStages ? kChunkTiles : kChunkTiles - kStages;
  }
}

// Consumer warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles in turn. Warp 0 also has the row sums,
// lane l that of slot l modulo their number.
template <int D, int Halves>
__device__ __forceinline__ void consume_tiles(const PipedMemory<D>& m, const Block<Halves>& block, int warp,
                                              Numerator<D>& out, float& row_sum) {
  const int lane = threadIdx.x % 32;
  const int slot = lane % (8 * Halves);
  const int first_vector = warp * 2 * slices_of_warp<D>;
  const bool has_slice = D >= 32 * kWarps || first_vector * 16 < D;
  const int count = block.end - block.first;
  row_sum = 0.0f;

  int stage = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const int tile = i % kChunkTiles;
    const ChunkWeights& chunk = m.weights[i / kChunkTiles % 2];
    const TileWeights& weights = chunk.tiles[tile];
    m.pipeline.consumer_wait(stage);
    if (has_slice) {
      accumulate_swizzled<D, Halves>(out, &weights.p[0][lane], &weights.rescale[lane / 4],
                                     &m.v[stage * kTileTokens], first_vector);
    }
    if (warp == 0) row_sum = __fmaf_rn(row_sum, weights.rescale[slot], chunk.tile_sum[slot][tile]);
    if (i + kStages < count) m.pipeline.consumer_release(stage);
    stage = stage + 1 < kStages ? stage + 1 : 0;
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum).
template <int G, int D, int Page>
struct PipedRoles {
  template <int Halves>
  __device__ __forceinline__ static void run(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                             int total, int first_slot, float* partial, float* lse) {
    using Memory = PipedMemory<D>;
    static_assert(sizeof(Memory) == piped_memory_bytes<D>, "the launch uses the formula");
    extern __shared__ uint4 chunk_memory[];
    Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

    const int warp = warp_number();
    const int lane = threadIdx.x % 32;
    const Block<Halves> block = find_block<G, D, Halves>(in, lengths, tiles, total, first_slot);
    store_queries<G, D>(m.q, in, first_slot);
    if (threadIdx.x < kStages) m.pipeline.init(threadIdx.x);
    __syncthreads();  // q is there, and the pipeline

    const int slots = in.rows * G - first_slot;
    const int workspace = workspace_row<G>(blockIdx.x, first_slot);
    float* const own_lse = lse + workspace * 2;
    if (warp < kWarps) {
      float row_max[Halves];
      produce_tiles<D, Page, Halves>(m, in, block, warp, row_max);
      if (warp != 0 || lane % 4 != 0) return;
#pragma unroll
      for (int half = 0; half < Halves; ++half) {
        const int slot = lane / 4 + 8 * half;
        if (slot < slots) own_lse[slot * 2] = row_max[half];
      }
    } else {
      Numerator<D> out = {};
      float row_sum;
      consume_tiles<D, Halves>(m, block, warp - kWarps, out, row_sum);
      store_numerator<D, Halves, true>(out, warp - kWarps, in.v_scale, slots, partial + workspace * D);
      if (warp == kWarps && lane < 8 * Halves && lane < slots) own_lse[lane * 2 + 1] = row_sum;
    }
  }
};

}  // namespace grouped::direct
