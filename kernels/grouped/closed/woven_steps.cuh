// One block of one split and one row tile, eight warps, all alike: PV of a chunk is interleaved with QK of the next
// one, so that a warp always has sums to compute while its products are in flight.
//
// Iteration n, from 0 on, has QK of chunk n and PV of chunk n - 1, and then two barriers:
//   first   the maxima of chunk n are there; PV of chunk n - 1 is over: its V, weights and sums have been read
//   second  weights, sums, factors and V of chunk n are there; the maxima have been read
// The last iteration has no QK and no barriers.
//
// Two warps share a tile of 32 tokens for QK and softmax: each has the 8 tokens of its side in both groups of 16, so
// that the first addition of the tree over the tile's columns is a lane's own. For PV a warp has one slice of 32
// dimensions, of all tiles. Only the warp that copies K reads it. V has kVStages buffers of one tile; two of them hold
// tiles of the next chunk.
#pragma once
#include "../direct/scores.cuh"
#include "../direct/swizzled.cuh"
#include "../direct/weights.cuh"

namespace grouped::direct {

constexpr int kWovenWarps = 2 * kChunkTiles;
constexpr int kWovenThreads = 32 * kWovenWarps;
constexpr int kSideTokens = 8;   // of each 16
constexpr int kVStages = 6;      // tiles of V; those of two chunks would not fit twice on an SM
constexpr int kEarlyTiles = kVStages - kChunkTiles;  // of a chunk, whose V is copied an iteration ahead

// A row's maxima, one for each side of each tile.
using SideMaxima = float[kTileRows][kWovenWarps];  // read as float4
// The 16 sums of two columns that each row of a tile has.
using ColumnSums = float[kTileRows][16];

template <int D>
struct WovenMemory {
  SwizzledRow<D> k[kChunkTokens];
  SwizzledRow<D> v[kVStages * kTileTokens];
  TileWeights tiles[kChunkTiles];
  ColumnSums sums[kChunkTiles];
  SideMaxima maxima;
  Queries<D> q;
};

template <int D>
constexpr int woven_memory_bytes = (kChunkTokens + kVStages * kTileTokens) * D +
                                   kChunkTiles * (4 * 32 * 16 + 4 * kTileRows + 64 * kTileRows) +
                                   4 * kTileRows * kWovenWarps + 32 * D;

// A warp of the block.
struct Warp {
  int number;
  int tile;  // of a chunk
  int side;
};

// Tile copy by one warp: its side of the tile of K or V whose rows are `to`. A token >= total becomes zeros and is not
// read.
template <int D>
__device__ __forceinline__ void copy_side(audit::CopyQueue& copies, SwizzledRow<D>* to, const paged::Storage& storage,
                                          const TileAddress& address, int load_bytes, int first_token, int dense,
                                          int total, int side) {
  constexpr int vectors = D / 16;
  constexpr int rows = 32 / vectors;  // copied by a warp at once
  const int lane = threadIdx.x % 32;
  const int vector = lane % vectors;
  const int first_row = kSideTokens * side + lane / vectors;
  if (first_token + kTileTokens <= dense) {
    const unsigned char* from[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      from[i] = storage.bytes + static_cast<unsigned>(address.physical_page[i]) * storage.page_stride +
                static_cast<unsigned>((address.position[i] + first_row) * D + vector * 16);
    }
    const int own = swizzled<D>(lane / vectors, vector);
#pragma unroll
    for (int row = 0; row < kSideTokens; row += rows) {
      uint4* const target = &to[first_row + row][swizzled<D>(row, own)];
#pragma unroll
      for (int i = 0; i < 2; ++i) copies.copy16(target + i * kGroupTokens * vectors, from[i] + row * D);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
#pragma unroll 1
    for (int row = first_row; row < kSideTokens * (side + 1); row += rows) {
      const int physical_page = i == 0 ? address.physical_page[0] : address.physical_page[1];
      const int position = (i == 0 ? address.position[0] : address.position[1]) + row;
      const unsigned char* const from = paged::token_bytes(storage, physical_page, position) + vector * 16;
      copy_vector(copies, &to[i * kGroupTokens + row][swizzled<D>(row, vector)], from, load_bytes,
                  first_token + i * kGroupTokens + row < total);
    }
  }
}

// Where a lane reads, as indices of 16-byte vectors. They stay in registers: computing them again in each step costs
// more.
struct LaneIndices {
  int keys;    // the lane's row of its warp's tile of K, for the matrices of two steps and two groups
  int vector;  // exclusive-ored with a step, the vector of that row
  int values;  // its vector of a tile of V, for the first group's transposed matrices
  int lane;
};

// The same value, in a form that the compiler cannot compute again.
__device__ __forceinline__ int held(int value) {
  return __shfl_sync(paged::kAllLanes, value, static_cast<int>(threadIdx.x % 32));
}

template <int D>
__device__ __forceinline__ LaneIndices find_indices(const Warp& warp) {
  const int lane = threadIdx.x % 32;
  const int key = kGroupTokens * (lane / 8 % 2) + kSideTokens * warp.side + lane % 8;
  const int value = lane % 16;
  LaneIndices indices;
  indices.keys = (warp.tile * kTileTokens + key) * (D / 16);
  indices.vector = swizzled<D>(key, D > 64 ? lane / 16 : 0);
  indices.values = value * (D / 16) + swizzled<D>(value, 2 * warp.number + lane / 16);
  return {held(indices.keys), held(indices.vector), held(indices.values), held(lane)};
}

// The products of Steps steps, from an even one on or the only one of its kind, for a warp's side of a tile.
template <int D, int Steps>
__device__ __forceinline__ void multiply_side(float (&t)[2][2][4], const WovenMemory<D>& m, const LaneIndices& indices,
                                              const Warp& warp, int step) {
  unsigned words[4];
  if constexpr (kWordsOfKeys) audit::load_matrices<false>(words, &m.k[0][0] + indices.keys + (step ^ indices.vector));
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    unsigned queries[4];
    load_registers(queries, &m.q[step + i][indices.lane]);
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      unsigned operand[2];
      if constexpr (kWordsOfKeys) {
        operand[0] = decode_low(words[2 * i + group]);
        operand[1] = decode_high(words[2 * i + group]);
      } else {
        const int token = kGroupTokens * group + kSideTokens * warp.side + indices.lane / 4;
        load_keys(operand, &m.k[warp.tile * kTileTokens + token][swizzled<D>(token, step + i)], 0);
      }
      audit::product_m16n8k16(t[i][group], queries, operand, zero);
    }
  }
}

// The running sums of a side. Before the first step both are +0, which gives s = t and c = +0.
template <int Elements>
struct SideSums {
  float sum[2][Elements];
  float compensation[2][Elements];

  __device__ __forceinline__ void add(const float (&t)[2][4]) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) kahan_add<4>(sum[group][e], compensation[group][e], t[group][e], 2);
    }
  }
};

// PV of one tile and one group of 16 tokens, for a slice: tile += P V, then R V'. p points to the lane's own of the
// group and R lies behind P; v points to the lane's vector for the transposed matrices.
__device__ __forceinline__ void multiply_group(float (&tile)[4][4], const uint4* p, const uint4* v) {
  unsigned weights[4];
  unsigned rests[4];
  load_registers(weights, p);
  load_registers(rests, p + 64);
  unsigned values[4][2];
  load_transposed_values(values, v);
  multiply_values(tile, weights, rests, values);
}

// out = fma(out, rescale, tile).
template <int Halves>
__device__ __forceinline__ void add_slice(float (&out)[4][4], const float (&tile)[4][4], const float* rescale) {
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) out[j][e] = __fmaf_rn(out[j][e], rescale[8 * half], tile[j][e]);
    }
  }
}

__device__ __forceinline__ int next_stage(int stage, int tiles) {
  return stage + tiles < kVStages ? stage + tiles : stage + tiles - kVStages;
}

// PV of the first `count` tiles of a chunk, V from stage `stage` on.
template <int D, int Halves>
__device__ __forceinline__ void accumulate_tiles_alone(float (&out)[4][4], const WovenMemory<D>& m, const Warp& warp,
                                                const LaneIndices& indices, int stage, int count) {
  if (warp.number * 32 >= D) return;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const uint4* const p = &m.tiles[i].p[0][indices.lane];
    const uint4* const v = &m.v[0][0] + stage * (kTileTokens * D / 16) + indices.values;
    float tile[4][4] = {};
#pragma unroll
    for (int group = 0; group < 2; ++group) multiply_group(tile, p + 32 * group, v + group * kGroupTokens * (D / 16));
    add_slice<Halves>(out, tile, &m.tiles[i].rescale[indices.lane / 4]);
    stage = next_stage(stage, 1);
  }
}

// QK of a warp's side, with PV of a whole chunk between its steps.
template <int D, int Halves, bool Adding>
__device__ __forceinline__ void sum_side(float (&score)[2][2 * Halves], float (&out)[4][4], const WovenMemory<D>& m,
                                         const Warp& warp, const LaneIndices& indices, int stage) {
  constexpr int steps = D / 16 / kChunkTiles;  // of QK to a tile of PV
  constexpr int at_once = steps > 1 ? 2 : 1;
  const bool adding = Adding && (D >= 32 * kWovenWarps || warp.number * 32 < D);
  SideSums<2 * Halves> sums = {};
#pragma unroll 1
  for (int i = 0; i < kChunkTiles; ++i) {
    const uint4* const p = &m.tiles[i].p[0][indices.lane];
    const uint4* const v = &m.v[0][0] + stage * (kTileTokens * D / 16) + indices.values;
    float tile[4][4] = {};
#pragma unroll
    for (int step = 0; step < steps; step += at_once) {
      float t[2][2][4];
      multiply_side<D, at_once>(t, m, indices, warp, steps * i + step);
      if (adding) {
        if (step == 0) multiply_group(tile, p, v);
        if (step == (steps > 2 ? 2 : 0)) multiply_group(tile, p + 32, v + kGroupTokens * (D / 16));
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) sums.add(t[k]);
    }
    if (adding) add_slice<Halves>(out, tile, &m.tiles[i].rescale[indices.lane / 4]);
    stage = next_stage(stage, 1);
  }
#pragma unroll
  for (int group = 0; group < 2; ++group) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) score[group][e] = sums.sum[group][e];
  }
}

// Scales the scores of a side, sets those that a row does not see to -1e30, and stores their maxima. `visible` is the
// number of columns that the row of each half sees; it is read only if `masked`.
template <int Halves>
__device__ __forceinline__ void scale_side(SideMaxima& maxima, const Warp& warp, float (&score)[2][2 * Halves],
                                           float score_scale, bool masked, const int (&visible)[Halves]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int group = 0; group < 2; ++group) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) {
      const int column = kGroupTokens * group + kSideTokens * warp.side + 2 * (lane % 4) + e % 2;
      score[group][e] *= score_scale;
      if (masked && column >= visible[e / 2]) score[group][e] = paged::kNothing;
    }
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int e = 2 * half;
    float greatest = max(max(score[0][e], score[0][e + 1]), max(score[1][e], score[1][e + 1]));
    greatest = max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 2));
    greatest = max(greatest, __shfl_xor_sync(paged::kAllLanes, greatest, 1));
    if (lane % 4 == 0) maxima[lane / 4 + 8 * half][warp.number] = greatest;
  }
}

// The running maxima of the rows: before a warp's tile, past it, and past the whole chunk.
template <int Halves>
__device__ __forceinline__ void advance_side_max(const SideMaxima& maxima, const Warp& warp, float (&before)[Halves],
                                                 float (&greatest)[Halves], float (&row_max)[Halves]) {
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const float4* const sides = reinterpret_cast<const float4*>(maxima[threadIdx.x % 32 / 4 + 8 * half]);
    const float4 first = sides[0];
    const float4 last = sides[1];
    const float tile_max[kChunkTiles] = {max(first.x, first.y), max(first.z, first.w), max(last.x, last.y),
                                         max(last.z, last.w)};
    float so_far = row_max[half];
#pragma unroll
    for (int i = 0; i < kChunkTiles; ++i) {
      if (i == warp.tile) before[half] = so_far;
      so_far = max(so_far, tile_max[i]);
      if (i == warp.tile) greatest[half] = so_far;
    }
    row_max[half] = so_far;
  }
}

// The weights of one side of a tile: P = half(p) and R = half((p - P) * 2^11) in its registers of the A fragments of
// PV, the sums of two columns, and the rescale of one half of the rows. p holds the scores on entry.
template <int Halves>
__device__ __forceinline__ void store_side(TileWeights& weights, ColumnSums& sums, const Warp& warp,
                                           float (&p)[2][2 * Halves], const float (&before)[Halves],
                                           const float (&greatest)[Halves], bool masked, const int (&visible)[Halves]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int group = 0; group < 2; ++group) {
#pragma unroll
    for (int e = 0; e < 2 * Halves; ++e) {
      const int column = kGroupTokens * group + kSideTokens * warp.side + 2 * (lane % 4) + e % 2;
      p[group][e] = weight_of(p[group][e], greatest[e / 2]);
      if (masked && column >= visible[e / 2]) p[group][e] = 0.0f;
    }
  }
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    float* const pair = &sums[lane / 4 + 8 * half][kSideTokens * warp.side + 2 * (lane % 4)];
    *reinterpret_cast<float2*>(pair) =
        make_float2(p[0][2 * half] + p[1][2 * half], p[0][2 * half + 1] + p[1][2 * half + 1]);
  }
  if (warp.side < Halves && lane % 4 == 0) {
    const float rescale = warp.side == 0 ? weight_of(before[0], greatest[0])
                                         : weight_of(before[Halves - 1], greatest[Halves - 1]);
    weights.rescale[lane / 4 + 8 * warp.side] = rescale;
  }
#pragma unroll
  for (int group = 0; group < 2; ++group) {
    unsigned rounded[2] = {};
    unsigned rest[2] = {};
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const float* const pair = &p[group][2 * half];
      const __half2 halves = __floats2half2_rn(pair[0], pair[1]);
      const float2 back = __half22float2(halves);
      rounded[half] = bits_of(halves);
      rest[half] = bits_of(__floats2half2_rn((pair[0] - back.x) * 2048.0f, (pair[1] - back.y) * 2048.0f));
    }
    reinterpret_cast<uint2*>(&weights.p[group][lane])[warp.side] = make_uint2(rounded[0], rounded[1]);
    reinterpret_cast<uint2*>(&weights.r[group][lane])[warp.side] = make_uint2(rest[0], rest[1]);
  }
}

// sum = fma(sum, rescale, tile sum) for the first `count` tiles of a chunk. A warp of side 0 has four slots: lane
// (i, tile) of 16 finishes the tree of slot 4 * warp.tile + i over the columns of one tile. All four then have the sum.
template <int D, int Halves>
__device__ __forceinline__ void advance_side_sum(const WovenMemory<D>& m, const Warp& warp, float& row_sum, int count) {
  if (4 * warp.tile >= 8 * Halves) return;  // padding, which has no sums
  const int lane = threadIdx.x % 32;
  const int slot = 4 * warp.tile + lane / 4 % 4;
  const int tile = lane % 4;
  float tile_sum = 0.0f;
  if (tile < count) {
    const float4* const columns = reinterpret_cast<const float4*>(m.sums[tile][slot]);
    const float4 a = columns[0], b = columns[1], c = columns[2], d = columns[3];
    const float4 low = make_float4(a.x + c.x, a.y + c.y, a.z + c.z, a.w + c.w);
    const float4 high = make_float4(b.x + d.x, b.y + d.y, b.z + d.z, b.w + d.w);
    tile_sum = ((low.x + high.x) + (low.z + high.z)) + ((low.y + high.y) + (low.w + high.w));
  }
  float rescales[kChunkTiles];
  float tile_sums[kChunkTiles];
#pragma unroll
  for (int i = 0; i < kChunkTiles; ++i) {
    rescales[i] = i < count ? m.tiles[i].rescale[slot] : 1.0f;
    tile_sums[i] = __shfl_sync(paged::kAllLanes, tile_sum, lane / 4 * 4 + i);
  }
#pragma unroll
  for (int i = 0; i < kChunkTiles; ++i) {
    if (i < count) row_sum = __fmaf_rn(row_sum, rescales[i], tile_sums[i]);
  }
}

// out * v_scale of a slice to partial. -0 is never stored.
template <int D, int Halves>
__device__ __forceinline__ void store_slice(const float (&out)[4][4], int warp, float v_scale, int slots,
                                            float* partial_row) {
  const int lane = threadIdx.x % 32;
  if (warp * 32 >= D) return;
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = lane / 4 + 8 * half;
    if (slot >= slots) continue;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float value[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) value[j] = out[2 * e + j % 2][2 * half + j / 2] * v_scale + 0.0f;
      const int d = 32 * warp + 16 * e + 4 * (lane % 4);
      *reinterpret_cast<float4*>(partial_row + slot * D + d) = make_float4(value[0], value[1], value[2], value[3]);
    }
  }
}

// partial f32 [80, 8, G, D] and lse f32 [80, 8, G, 2] = (max, sum).
template <int G, int D, int Page>
struct WovenSteps {
  template <int Halves>
  __device__ __forceinline__ static void run(const paged::Inputs& in, const Lengths& lengths, const TileRange& tiles,
                                             int total, int first_slot, float* partial, float* lse) {
    using Memory = WovenMemory<D>;
    static_assert(sizeof(Memory) == woven_memory_bytes<D>, "the launch uses the formula");
    extern __shared__ uint4 chunk_memory[];
    Memory& m = *reinterpret_cast<Memory*>(chunk_memory);

    const int number = warp_number();
    const Warp warp = {number, number >> 1, number & 1};
    const LaneIndices indices = find_indices<D>(warp);
    const int lane = threadIdx.x % 32;
    const float score_scale = in.scale * in.k_scale;
    const Block<Halves> block = find_block<G, D, Halves>(in, lengths, tiles, total, first_slot);
    const bool early = warp.tile < kEarlyTiles;
    SwizzledRow<D>* const keys = &m.k[warp.tile * kTileTokens];
    audit::CopyQueue copies;
    const auto copy = [&](SwizzledRow<D>* to, const paged::Storage& storage, int tile, const TileAddress& address) {
      if (tile < block.end) {
        copy_side<D>(copies, to, storage, address, block.load_bytes, tile * kTileTokens, block.dense, block.total,
                     warp.side);
      }
    };

    float row_max[Halves];
#pragma unroll
    for (int half = 0; half < Halves; ++half) row_max[half] = paged::kNothing;
    float row_sum = 0.0f;
    float out[4][4] = {};
    int tile = tiles.first + warp.tile;  // this warp's, of K
    TileAddress address = find_tile<Page>(in, tile, block);
    copy(keys, in.k, tile, address);
    if (early) copy(&m.v[warp.tile * kTileTokens], in.v, tile, address);
    copies.commit();
    for (int step = number; step < D / 16; step += kWovenWarps) {
      unsigned registers[4];
      load_query<G, D>(registers, in, first_slot, step);
      m.q[step][lane] = make_uint4(registers[0], registers[1], registers[2], registers[3]);
    }
    copies.wait<0>();
    __syncthreads();

    int pending = 0;  // tiles of the last chunk whose PV is still to come
    int stage = 0;    // of its first tile of V
    int copied = early ? kChunkTiles + warp.tile : warp.tile;  // stage of the tile of V that this warp copies next
    copied = copied < kVStages ? copied : copied - kVStages;
#pragma unroll 1
    for (int chunk = tiles.first;; chunk += kChunkTiles) {
      const bool has_tile = tile < block.end;
      const TileAddress next = find_tile<Page>(in, tile + kChunkTiles, block);
      float score[2][2 * Halves];
      if (has_tile && pending == kChunkTiles) {
        sum_side<D, Halves, true>(score, out, m, warp, indices, stage);
      } else {
        if (has_tile) sum_side<D, Halves, false>(score, out, m, warp, indices, stage);
        accumulate_tiles_alone<D, Halves>(out, m, warp, indices, stage, pending);
      }
      if (warp.side == 0) advance_side_sum<D, Halves>(m, warp, row_sum, pending);
      if (chunk >= block.end) break;

      const bool masked = (tile + 1) * kTileTokens > block.visible.shortest;
      int visible[Halves];
#pragma unroll
      for (int half = 0; half < Halves; ++half) visible[half] = block.visible.own[half] - tile * kTileTokens;
      if (has_tile) {
        __syncwarp();  // the warp's K has been read
        copy(keys, in.k, tile + kChunkTiles, next);
        scale_side<Halves>(m.maxima, warp, score, score_scale, masked, visible);
      } else if (lane < kTileRows) {
        m.maxima[lane][number] = paged::kNothing;
      }
      __syncthreads();

      if (early) address = next;
      copy(&m.v[copied * kTileTokens], in.v, early ? tile + kChunkTiles : tile, address);
      copies.commit();
      float before[Halves];
      float greatest[Halves];
      advance_side_max(m.maxima, warp, before, greatest, row_max);
      if (has_tile) {
        store_side<Halves>(m.tiles[warp.tile], m.sums[warp.tile], warp, score, before, greatest, masked, visible);
      }
      if (pending > 0) stage = next_stage(stage, kChunkTiles);
      pending = block.end - chunk < kChunkTiles ? block.end - chunk : kChunkTiles;
      copied = next_stage(copied, kChunkTiles);
      address = next;
      tile += kChunkTiles;
      copies.wait<0>();
      __syncthreads();
    }

    const int slots = in.rows * G - first_slot;
    const int workspace = workspace_row<G>(blockIdx.x, first_slot);
    store_slice<D, Halves>(out, number, in.v_scale, slots, partial + workspace * D);
    const int slot = 4 * warp.tile + lane / 4;
    if (warp.side == 0 && lane < 16 && lane % 4 == 0 && slot < slots && slot < 8 * Halves) {
      lse[(workspace + slot) * 2 + 1] = row_sum;
    }
    if (number != 1 || lane % 4 != 0) return;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const int own = lane / 4 + 8 * half;
      if (own < slots) lse[(workspace + own) * 2] = row_max[half];
    }
  }
};

}  // namespace grouped::direct
