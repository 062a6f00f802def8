// The shared memory of one block of a split, and how q, K and V get there: staged as f16 panels.
#pragma once
#include <cuda_fp8.h>

#include "../geometry.cuh"

namespace grouped::staged {

struct __align__(32) SharedLine {  // load_matrix_sync wants 32-byte alignment
  unsigned char bytes[32];
};

// The rows' state in shared memory. A variant that keeps it in registers specialises this.
template <int Slots, int PanelTiles, bool InRegisters>
struct StateMemory {
  float rescale[PanelTiles][Slots][16];  // a row's factor 16 times over, to be read as an accumulator fragment
  float row_max[Slots];
  float row_sum[Slots];
};

// Rows are padded by 16 bytes, so that a fragment's rows start in different banks.
template <int D, int RowTiles, int Warps, int PanelTiles = 1, bool StateInRegisters = false>
struct SplitMemory {
  static constexpr int slots = RowTiles * kTileRows;
  static constexpr int tokens = PanelTiles * kTileTokens;
  static constexpr int panel_stride = D + 8;
  static constexpr int weight_stride = tokens + 8;
  static constexpr int score_stride = tokens + 4;
  static constexpr int stage_stride = 16 + 4;

  __half q[slots][panel_stride];
  __half k[tokens][panel_stride];
  __half v[tokens][panel_stride];
  __half p[slots][weight_stride];
  __half r[slots][weight_stride];
  float score[slots][score_stride];
  StateMemory<slots, PanelTiles, StateInRegisters> state;
  float stage[Warps][16][stage_stride];
  int length[slots];  // 0 in padding
};

template <int D, int RowTiles, int Warps, int PanelTiles = 1, bool StateInRegisters = false>
constexpr int split_memory_bytes =
    2 * (kTileRows * RowTiles + 2 * kTileTokens * PanelTiles) * (D + 8) +  // q, k, v
    kTileRows * RowTiles *
        (4 * (kTileTokens * PanelTiles + 8) + 4 * (kTileTokens * PanelTiles + 4) +  // p, r, score
         (StateInRegisters ? 0 : 64 * PanelTiles) + 12) +                           // state, length
    1280 * Warps;                                                                   // stage

// Loads q and the rows' lengths at the start of a split. q of a row of length 0 may hold anything and is not read.
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
  }
}

// K and V are loaded and decoded by vectors of 16 bytes, one thread a vector.
constexpr int kVector = 16;

// 16 e4m3 bytes to f16, exactly. `to` is aligned to 16 bytes.
__device__ __forceinline__ void decode_vector(__half* to, const uint4& vector) {
  const unsigned word[4] = {vector.x, vector.y, vector.z, vector.w};
  unsigned pair[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto bytes = static_cast<__nv_fp8x2_storage_t>(word[i / 2] >> 16 * (i % 2));
    const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(bytes, __NV_E4M3);
    pair[i] = halves.x | static_cast<unsigned>(halves.y) << 16;
  }
  uint4* const lines = reinterpret_cast<uint4*>(to);
  lines[0] = make_uint4(pair[0], pair[1], pair[2], pair[3]);
  lines[1] = make_uint4(pair[4], pair[5], pair[6], pair[7]);
}

// Loads K and V of one panel, each byte once; a thread issues all its loads before it decodes. A token >= end becomes
// +0: neither it nor its table entry is read.
template <int D, int LoadBytes, class Variant, class Memory>
__device__ __forceinline__ void load_panel(Memory& m, const paged::Inputs& in, int first_token, int end) {
  constexpr int vectors = D / kVector;  // of one token
  constexpr int columns = Variant::threads / vectors;
  constexpr int passes = (Memory::tokens + columns - 1) / columns;
  static_assert(Variant::threads % vectors == 0, "a thread has the same vector of every token");
  const int page = Variant::page > 0 ? Variant::page : in.page;
  const int d = threadIdx.x % vectors * kVector;
  const int first_column = threadIdx.x / vectors;
  uint4 k[passes];
  uint4 v[passes];
#pragma unroll
  for (int i = 0; i < passes; ++i) {
    const int token = first_token + first_column + i * columns;
    k[i] = v[i] = make_uint4(0, 0, 0, 0);
    if (first_column + i * columns < Memory::tokens && token < end) {
      const int physical_page = in.table[token / page];
      k[i] = paged::load_vector<LoadBytes>(paged::token_bytes(in.k, physical_page, token % page) + d);
      v[i] = paged::load_vector<LoadBytes>(paged::token_bytes(in.v, physical_page, token % page) + d);
    }
  }
#pragma unroll
  for (int i = 0; i < passes; ++i) {
    const int column = first_column + i * columns;
    if (column >= Memory::tokens) break;
    decode_vector(&m.k[column][d], k[i]);
    decode_vector(&m.v[column][d], v[i]);
  }
}

template <int D, class Variant, class Memory>
__device__ __forceinline__ void load_panels(Memory& m, const paged::Inputs& in, int load_bytes,
                                            int first_token, int end) {
  if (load_bytes == 16) {
    load_panel<D, 16, Variant>(m, in, first_token, end);
  } else if (load_bytes == 8) {
    load_panel<D, 8, Variant>(m, in, first_token, end);
  } else {
    load_panel<D, 1, Variant>(m, in, first_token, end);
  }
}

}  // namespace grouped::staged
