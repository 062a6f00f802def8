// One block of one split and one row tile: chunks of four tiles of tokens, one tile a warp for QK and softmax, a
// quarter of the dimensions a warp for PV.
//
// Copies run ahead. A warp's tile of K is read by that warp alone, which fetches the next one as soon as it has
// the scores. V has two buffers: the next chunk's goes where the last chunk's was, once every warp is past that.
// Two barriers a chunk:
//   first   the tiles' maxima are there; the last chunk's V, P, R and factors have been read
//   second  this chunk's V, P, R, sums and factors are there; the maxima have been read
#pragma once
#include "lengths.cuh"
#include "numerator.cuh"
#include "weights.cuh"

namespace grouped {
namespace direct {

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum). Halves = 1: slots 8 to 15 of the row tile are
// padding.
template <int G, int D, int Page, int Halves>
__device__ __forceinline__ void run_rows(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                         int total, int first_slot, float* partial, float* lse) {
  using Memory = ChunkMemory<D>;
  static_assert(sizeof(Memory) == chunk_memory_bytes<D>, "the launch uses the formula");
  extern __shared__ uint4 chunk_memory[];
  Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

  const int warp = warp_number();
  const int lane = threadIdx.x % 32;
  const int load_bytes = aligned_load(in);
  const int dense = dense_tokens<D>(in, load_bytes, total);
  const float score_scale = in.scale * in.k_scale;
  const Sight<Halves> sight = find_sight<G, Halves>(lengths, first_slot);
  const int seen_tiles = (sight.longest + kTileTokens - 1) / kTileTokens;
  const int end = tiles.end < seen_tiles ? tiles.end : seen_tiles;
  TokenRow<D>* const own_keys = &m.k[warp * kTileTokens];

  float row_max[Halves];
  float row_sum[Halves];
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    row_max[half] = paged::kNothing;
    row_sum[half] = 0.0f;
  }
  Numerator<D> out = {};
  audit::CopyQueue copies;
  if (tiles.first + warp < end) {
    const int first_token = (tiles.first + warp) * kTileTokens;
    const TilePlaces places = find_tile<Page>(in, first_token, total);
    copy_tile<D>(copies, own_keys, in.k, places, load_bytes, first_token, dense, total);
    copies.commit();
    copy_tile<D>(copies, &m.v[0][warp * kTileTokens], in.v, places, load_bytes, first_token, dense, total);
    copies.commit();
  }
  unsigned q[D / 16][4];
#pragma unroll
  for (int step = 0; step < D / 16; ++step) load_query<G, D>(q[step], in, first_slot, step);

  int buffer = 0;
  for (int chunk = tiles.first; chunk < end; chunk += kChunkTiles) {
    const int first_token = (chunk + warp) * kTileTokens;
    const int next_token = first_token + kChunkTokens;
    const bool working = chunk + warp < end;
    const bool has_next = chunk + kChunkTiles + warp < end;
    TilePlaces next = {};
    if (has_next) next = find_tile<Page>(in, next_token, total);

    float score[4][4];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = first_token + kTileTokens > sight.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = sight.own[half] - first_token;
    copies.wait<1>();
    __syncwarp();  // the warp's K is there
    if (working) {
      sum_products<D, 2 * Halves>(score, q, own_keys);
      scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_tile(m.tile_max, warp);
    }
    __syncwarp();  // and has been read
    if (has_next) copy_tile<D>(copies, own_keys, in.k, next, load_bytes, next_token, dense, total);
    copies.commit();
    __syncthreads();

    if (has_next) {
      copy_tile<D>(copies, &m.v[buffer ^ 1][warp * kTileTokens], in.v, next, load_bytes, next_token, dense, total);
    }
    copies.commit();
    float before[Halves];
    advance_max(m.tile_max, warp, before, row_max);
    if (working) {
      weigh<Halves>(m.weights, warp, score, tile_max, before, masked, visible);
    } else {
      skip_sums(m.weights, warp);
    }
    copies.wait<2>();
    __syncthreads();

    const int count = end - chunk < kChunkTiles ? end - chunk : kChunkTiles;
    if (warp == 0) advance_sum(m.weights, row_sum, count);
    add_chunk<D, Halves>(out, m, warp, buffer, count);
    buffer ^= 1;
  }

  const int slots = in.rows * G - first_slot;
  const int workspace = workspace_row<G>(blockIdx.x, first_slot);
  store_numerator<D, Halves>(out, warp, in.v_scale, slots, partial + workspace * D);
  if (warp != 0 || lane % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = lane / 4 + 8 * half;
    if (slot >= slots) continue;
    lse[(workspace + slot) * 2] = row_max[half];
    lse[(workspace + slot) * 2 + 1] = row_sum[half];
  }
}

// Block (split, row tile). Active splits and slots < rows * G are written, nothing else.
template <int G, int D, int Page>
__device__ __forceinline__ void run_split(const paged::Inputs& in, float* partial, float* lse) {
  const int split = blockIdx.x;
  const Lengths lengths = load_lengths(in.lengths, in.rows);
  const int total = total_tokens(lengths);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int first_slot = blockIdx.y * kTileRows;
  if (in.rows * G - first_slot > 8) {
    run_rows<G, D, Page, 2>(in, lengths, tiles, total, first_slot, partial, lse);
  } else {
    run_rows<G, D, Page, 1>(in, lengths, tiles, total, first_slot, partial, lse);
  }
}

}  // namespace direct
}  // namespace grouped
