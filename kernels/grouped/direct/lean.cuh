// One block of one split and one row tile, its warps in the two roles of roles.cuh. All copies are on the side of
// those that weigh: those that add look up nothing and wait for no copy.
//
// Phase n, from 0 on: the first role weighs chunk n while the second one adds chunk n - 1. Two barriers a phase:
//   first   the chunk's maxima are there; tiles 0 to 2 of the last chunk have been added, and its tile 3 of V is there
//   second  the chunk's weights are there, and V of its tiles 0 to 2; the maxima have been read; the last chunk has
//           been added
// The last phase has nothing to weigh and one barrier, the first. Warp w copies whole rows of its own tile, K and V: K
// once it has the scores; V of tiles 0 and 1, which have two places, at the beginning of the phase; of tile 2 between
// the barriers; of tile 3 at the beginning of the next phase.
#pragma once
#include "roles.cuh"
#include "swizzled.cuh"

namespace grouped {
namespace direct {

constexpr int kTilesOfTwoPlaces = 2;
constexpr int kLateTile = kTilesBeforeMaxima;  // copied while the tiles before it are added
constexpr int kPlacesOfValues = kChunkTiles + kTilesOfTwoPlaces;
static_assert(kLateTile == kChunkTiles - 1 && kTilesOfTwoPlaces < kLateTile, "one tile of each of the other kinds");

template <int D>
struct LeanMemory {
  WholeRow<D> k[kChunkTokens];
  WholeRow<D> v[kPlacesOfValues * kTileTokens];
  ChunkWeights weights[2];
  TileValues tile_max;
  uint4 q[D / 16][32];  // as A fragments: one lane's four registers
  alignas(16) audit::Barrier meeting;
};

template <int D>
constexpr int lean_memory_bytes = (kChunkTokens + kPlacesOfValues * kTileTokens) * D + 2 * kChunkWeightsBytes +
                                  kTileValuesBytes + 32 * D + 16;

// The rows of a chunk's tile of V. Two places: of even and of odd chunks.
__device__ __forceinline__ int place_of_values(int tile, int parity) {
  return kTileTokens * (tile < kTilesOfTwoPlaces ? 2 * tile + parity : tile + kTilesOfTwoPlaces);
}

// The role of warps 0 to 3: one tile a warp and phase. Returns the rows' maxima over all tiles.
template <int D, int Page, int Halves>
__device__ __forceinline__ void weigh_and_copy(LeanMemory<D>& m, const paged::Inputs& in, const Block<Halves>& block,
                                               int warp, float (&row_max)[Halves]) {
  const float score_scale = in.scale * in.k_scale;
  audit::CopyQueue copies;
  const auto find = [&](int tile) {
    TilePlaces places = {};
    if (tile < block.end) places = find_tile<Page>(in, tile * kTileTokens, block.total);
    return places;
  };
  const auto copy = [&](WholeRow<D>* to, const paged::Storage& storage, int tile, const TilePlaces& places) {
    if (tile < block.end) {
      copy_swizzled<D>(copies, to, storage, places, block.load_bytes, tile * kTileTokens, block.dense, block.total);
    }
  };
  WholeRow<D>* const keys = &m.k[warp * kTileTokens];
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
  TilePlaces last = {};
  TilePlaces places = find(block.first + warp);
  copy(keys, in.k, block.first + warp, places);
  copies.commit();
  copies.wait<0>();
  meet(m);
  if (block.first >= block.end) return;

  int parity = 0;
  int tile = block.first + warp;
#pragma unroll 1
  while (true) {
    const bool working = tile < block.end;
    const bool late = warp == kLateTile;
    TilePlaces of_values = places;
    if (late) of_values = last;
    if (late ? tile > block.first + warp : warp < kTilesOfTwoPlaces) {
      copy(m.v + place_of_values(warp, parity), in.v, late ? tile - kChunkTiles : tile, of_values);
    }
    copies.commit();
    if (tile >= block.end + warp) break;
    const TilePlaces next = find(tile + kChunkTiles);

    float score[4][4];
    float compensation[4][2 * Halves];
    float tile_max[Halves];
    int visible[Halves];
    const bool masked = (tile + 1) * kTileTokens > block.sight.shortest;
#pragma unroll
    for (int half = 0; half < Halves; ++half) visible[half] = block.sight.own[half] - tile * kTileTokens;
    if (working) {
      sum_steps<D, 2 * Halves, 0, D / 16>(score, compensation, m.q, keys);
      __syncwarp();  // K has been read
      copy(keys, in.k, tile + kChunkTiles, next);
      scale_scores<Halves>(m.tile_max, warp, score, tile_max, score_scale, masked, visible);
    } else {
      skip_tile(m.tile_max, warp);
    }
    copies.commit();
    copies.wait<1>();  // for V
    meet(m);

    if (warp >= kTilesOfTwoPlaces && !late) copy(m.v + place_of_values(warp, parity), in.v, tile, places);
    copies.commit();
    float before[Halves];
    advance_max(m.tile_max, warp, before, row_max);
    if (working) {
      weigh<Halves>(m.weights[parity], warp, score, tile_max, before, masked, visible);
    } else {
      skip_sums(m.weights[parity], warp);
    }
    last = places;
    places = next;
    parity ^= 1;
    tile += kChunkTiles;
    copies.wait<0>();
    meet(m);
  }
  copies.wait<0>();
  meet(m);
}

// Of a chunk of `count` tiles those from First on and before End.
template <int D, int Halves, int First, int End>
__device__ __forceinline__ void add_tiles(Numerator<D>& out, const LeanMemory<D>& m, int first_piece, int parity,
                                          int count) {
  const int lane = threadIdx.x % 32;
  const auto add = [&](int tile) {
    const TileWeights& weights = m.weights[parity].tiles[tile];
    add_swizzled<D, Halves>(out, &weights.p[0][lane], &weights.rescale[lane / 4],
                            m.v + place_of_values(tile, parity), first_piece);
  };
  const int end = count < End ? count : End;
#pragma unroll 1
  for (int tile = First; tile < end; ++tile) add(tile);
}

// The role of warps 4 to 7, here 0 to 3: a quarter of the dimensions, all tiles. Before is how many of a chunk's tiles
// are added ahead of a phase's first barrier; Openings, how many barriers there are before the first chunk's weights.
template <int D, int Halves, int Before, int Openings>
__device__ __forceinline__ void only_add(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                         Numerator<D>& out, float (&row_sum)[Halves]) {
  const int first_piece = warp * 2 * blocks_of_warp<D>;
  const bool working = first_piece * 16 < D;
#pragma unroll
  for (int half = 0; half < Halves; ++half) row_sum[half] = 0.0f;
  meet(m);
  if (block.first >= block.end) return;
#pragma unroll
  for (int i = 1; i < Openings; ++i) meet(m);

  int parity = 0;
#pragma unroll 1
  for (int chunk = block.first; chunk < block.end; chunk += kChunkTiles) {
    const int count = block.end - chunk;
    if (working) add_tiles<D, Halves, 0, Before>(out, m, first_piece, parity, count);
    meet(m);
    if (working) add_tiles<D, Halves, Before, kChunkTiles>(out, m, first_piece, parity, count);
    if (warp == 0) advance_sum(m.weights[parity], row_sum, count);
    parity ^= 1;
    if (count > kChunkTiles) meet(m);
  }
}

// What the two kinds of roles are: this header's.
struct LeanRoles {
  template <int D, int Page, int Halves>
  __device__ __forceinline__ static void weigh_chunks(LeanMemory<D>& m, const paged::Inputs& in,
                                                      const Block<Halves>& block, int warp,
                                                      float (&row_max)[Halves]) {
    weigh_and_copy<D, Page, Halves>(m, in, block, warp, row_max);
  }

  template <int D, int Halves>
  __device__ __forceinline__ static void add_chunks(const LeanMemory<D>& m, const Block<Halves>& block, int warp,
                                                    Numerator<D>& out, float (&row_sum)[Halves]) {
    only_add<D, Halves, kLateTile, 3>(m, block, warp, out, row_sum);
  }
};

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum). Halves = 1: slots 8 to 15 of the row tile are
// padding.
template <class Roles, int G, int D, int Page, int Halves>
__device__ __forceinline__ void run_lean_roles(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                               int total, int first_slot, float* partial, float* lse) {
  using Memory = LeanMemory<D>;
  static_assert(sizeof(Memory) == lean_memory_bytes<D>, "the launch uses the formula");
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
    Roles::template weigh_chunks<D, Page>(m, in, block, warp, state);
  } else {
    Numerator<D> out = {};
    Roles::template add_chunks<D>(m, block, warp - kWarps, out, state);
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
template <class Roles, int G, int D, int Page>
__device__ __forceinline__ void run_split_in_lean_roles(const paged::Inputs& in, float* partial, float* lse) {
  const int split = blockIdx.x;
  const Lengths lengths = load_lengths(in.lengths, in.rows);
  const int total = total_tokens(lengths);
  const int active = active_splits(total);
  if (split >= active) return;
  const TileRange tiles = split_tiles(split, active, total);
  const int first_slot = blockIdx.y * kTileRows;
  if (in.rows * G - first_slot > 8) {
    run_lean_roles<Roles, G, D, Page, 2>(in, lengths, tiles, total, first_slot, partial, lse);
  } else {
    run_lean_roles<Roles, G, D, Page, 1>(in, lengths, tiles, total, first_slot, partial, lse);
  }
}

}  // namespace direct
}  // namespace grouped
