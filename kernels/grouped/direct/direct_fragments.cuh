// One block of one split and one row tile, all warps alike: chunks of four tiles of tokens, one tile a warp for QK and
// softmax, a quarter of the dimensions a warp for PV.
//
// Copies run ahead. Only one warp reads a tile of K, and it fetches the next one as soon as it has the scores. V has
// two buffers: that of the next chunk goes where that of the last chunk was, once every warp has read it. Two barriers
// a chunk:
//   first   the maxima of the tiles are there; V, P, R and factors of the last chunk have been read
//   second  V, P, R, sums and factors of this chunk are there; the maxima have been read
#pragma once
#include "padded.cuh"
#include "row_sums.cuh"
#include "weights.cuh"

namespace grouped::direct {

template <int D>
struct ChunkMemory {
  PaddedRow<D> k[kChunkTokens];
  PaddedRow<D> v[2][kChunkTokens];  // of this chunk and of the next one
  ChunkWeights weights;
  TileValues tile_max;
};

template <int D>
constexpr int chunk_memory_bytes = 3 * kChunkTokens * (D + 16) + kChunkWeightsBytes + kTileValuesBytes;

// PV of the first `tiles` tiles of a chunk, V in m.v[buffer].
template <int D, int Halves>
__device__ __forceinline__ void accumulate_chunk(Numerator<D>& out, const ChunkMemory<D>& m, int warp, int buffer,
                                                 int tiles) {
  const int first_slice = warp * slices_of_warp<D>;
  if (first_slice * 32 >= D) return;  // more warps than slices
  const int lane = threadIdx.x % 32;
  const uint4* p = &m.weights.tiles[0].p[0][lane];
  const float* rescale = &m.weights.tiles[0].rescale[lane / 4];
  const unsigned* v = reinterpret_cast<const unsigned*>(m.v[buffer][2 * (lane % 4)]) + 8 * first_slice + lane / 4;
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    accumulate_padded<D, Halves>(out, p, rescale, v);
    p += sizeof(TileWeights) / sizeof(uint4);
    rescale += sizeof(TileWeights) / sizeof(float);
    v += kTileTokens * (sizeof(PaddedRow<D>) / 4);
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum).
template <int G, int D, int Page>
struct DirectFragments {
  template <int Halves>
  __device__ __forceinline__ static void run(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                             int total, int first_slot, float* partial, float* lse) {
    using Memory = ChunkMemory<D>;
    static_assert(sizeof(Memory) == chunk_memory_bytes<D>, "the launch uses the formula");
    extern __shared__ uint4 chunk_memory[];
    Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

    const int warp = warp_number();
    const int lane = threadIdx.x % 32;
    const float score_scale = in.scale * in.k_scale;
    const Block<Halves> block = find_block<G, D, Halves>(in, lengths, tiles, total, first_slot);
    PaddedRow<D>* const own_keys = &m.k[warp * kTileTokens];

    float row_max[Halves];
    float row_sum[Halves];
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      row_max[half] = paged::kNothing;
      row_sum[half] = 0.0f;
    }
    Numerator<D> out = {};
    audit::CopyQueue copies;
    const auto copy = [&](PaddedRow<D>* to, const paged::Storage& storage, int first_token,
                          const TileAddress& address) {
      copy_padded<D>(copies, to, storage, address, block.load_bytes, first_token, block.dense, block.total);
    };
    if (block.first + warp < block.end) {
      const int first_token = (block.first + warp) * kTileTokens;
      const TileAddress address = look_up<Page>(in, first_token, block.total);
      copy(own_keys, in.k, first_token, address);
      copies.commit();
      copy(&m.v[0][warp * kTileTokens], in.v, first_token, address);
      copies.commit();
    }
    unsigned q[D / 16][4];
#pragma unroll
    for (int step = 0; step < D / 16; ++step) load_query<G, D>(q[step], in, first_slot, step);

    int buffer = 0;
    for (int chunk = block.first; chunk < block.end; chunk += kChunkTiles) {
      const int first_token = (chunk + warp) * kTileTokens;
      const int next_token = first_token + kChunkTokens;
      const bool has_tile = chunk + warp < block.end;
      const bool has_next = chunk + kChunkTiles + warp < block.end;
      TileAddress next = {};
      if (has_next) next = look_up<Page>(in, next_token, block.total);

      float score[4][4];
      float tile_max[Halves];
      int visible[Halves];
      const bool masked = first_token + kTileTokens > block.visible.shortest;
#pragma unroll
      for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - first_token;
      copies.wait<1>();
      __syncwarp();  // the warp's K is there
      if (has_tile) {
        sum_products<D, 2 * Halves>(score, q, own_keys);
        scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
      } else {
        skip_scores(m.tile_max, warp);
      }
      __syncwarp();  // and has been read
      if (has_next) copy(own_keys, in.k, next_token, next);
      copies.commit();
      __syncthreads();

      if (has_next) {
        copy(&m.v[buffer ^ 1][warp * kTileTokens], in.v, next_token, next);
      }
      copies.commit();
      float before[Halves];
      advance_max(m.tile_max, warp, before, row_max);
      if (has_tile) {
        store_weights<Halves>(m.weights, warp, score, tile_max, before, masked, visible);
      } else {
        skip_sums(m.weights, warp);
      }
      copies.wait<2>();
      __syncthreads();

      const int count = block.end - chunk < kChunkTiles ? block.end - chunk : kChunkTiles;
      if (warp == 0) advance_sum(m.weights, row_sum, count);
      accumulate_chunk<D, Halves>(out, m, warp, buffer, count);
      buffer ^= 1;
    }

    const int slots = in.rows * G - first_slot;
    const int workspace = workspace_row<G>(blockIdx.x, first_slot);
    store_numerator<D, Halves, false>(out, warp, in.v_scale, slots, partial + workspace * D);
    if (warp != 0 || lane % 4 != 0) return;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const int slot = lane / 4 + 8 * half;
      if (slot >= slots) continue;
      lse[(workspace + slot) * 2] = row_max[half];
      lse[(workspace + slot) * 2 + 1] = row_sum[half];
    }
  }
};

}  // namespace grouped::direct
