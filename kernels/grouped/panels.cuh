// What one block of a split keeps in shared memory, and how it gets there.
#pragma once
#include "../paged/arithmetic.cuh"
#include "geometry.cuh"

namespace grouped {

struct __align__(32) SharedLine {  // load_matrix_sync wants 32-byte alignment
  unsigned char bytes[32];
};

// Rows are padded by 16 bytes, so that a fragment's rows start in different banks.
template <int D, int RowTiles, int Warps>
struct SplitMemory {
  static constexpr int slots = RowTiles * kTileRows;
  static constexpr int panel_stride = D + 8;
  static constexpr int weight_stride = kTileTokens + 8;
  static constexpr int score_stride = kTileTokens + 4;
  static constexpr int stage_stride = 16 + 4;

  __half q[slots][panel_stride];
  __half k[kTileTokens][panel_stride];
  __half v[kTileTokens][panel_stride];
  __half p[slots][weight_stride];
  __half r[slots][weight_stride];
  float score[slots][score_stride];
  float rescale[slots][16];  // a row's factor 16 times over: it is read as an accumulator fragment
  float stage[Warps][16][stage_stride];
  float row_max[slots];
  float row_sum[slots];
  int length[slots];  // 0 in padding
};

template <int D, int RowTiles, int Warps>
constexpr int split_memory_bytes =
    2 * (kTileRows * RowTiles + 2 * kTileTokens) * (D + 8) +                        // q, k, v
    kTileRows * RowTiles * (4 * (kTileTokens + 8) + 4 * (kTileTokens + 4) + 76) +  // p, r, score, the rest
    1280 * Warps;                                                                  // stage

// q and each row's state at the start of a split. q of a row of length 0 may hold anything: it is not read.
template <int G, int D, class Memory>
__device__ __forceinline__ void begin_split(Memory& m, const paged::Inputs& in, int first_slot) {
  for (int i = threadIdx.x; i < Memory::slots * D; i += blockDim.x) {
    const int slot = first_slot + i / D;
    const bool live = slot / G < in.rows && in.lengths[slot / G] > 0;
    m.q[i / D][i % D] = live ? in.q[slot * D + i % D] : __ushort_as_half(0);
  }
  for (int i = threadIdx.x; i < Memory::slots; i += blockDim.x) {
    const int row = (first_slot + i) / G;
    const int length = row < in.rows ? in.lengths[row] : 0;
    m.length[i] = length > 0 ? length : 0;
    m.row_max[i] = paged::kNothing;
    m.row_sum[i] = 0.0f;
  }
}

// K and V of one tile, decoded, each byte read once. A token >= total is +0: neither it nor its table entry
// is read.
template <int D, class Memory>
__device__ __forceinline__ void load_panels(Memory& m, const paged::Inputs& in, int first_token, int total) {
  const int lane = threadIdx.x % 32;
  for (int column = threadIdx.x / 32; column < kTileTokens; column += blockDim.x / 32) {
    const int token = first_token + column;
    if (token < total) {
      const int physical_page = in.table[token / in.page];
      const unsigned char* const k = paged::token_bytes(in.k, physical_page, token % in.page);
      const unsigned char* const v = paged::token_bytes(in.v, physical_page, token % in.page);
      for (int d = lane; d < D; d += 32) {
        m.k[column][d] = paged::decode_e4m3(k[d]);
        m.v[column][d] = paged::decode_e4m3(v[d]);
      }
    } else {
      for (int d = lane; d < D; d += 32) {
        m.k[column][d] = __ushort_as_half(0);
        m.v[column][d] = __ushort_as_half(0);
      }
    }
  }
}

}  // namespace grouped
