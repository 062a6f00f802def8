// PV: each warp has a part of the dimensions, for all tiles of a chunk in their order. V goes from its bytes
// straight into B fragments.
//
// A warp's dimensions come in blocks of 32. Lane (g, t) reads the word at 4g of a block, of the four tokens 2t,
// 2t + 1, 2t + 8, 2t + 9 of each 16: byte j of it is column g of the block's product j. So the block's product j
// has the dimensions j, 4 + j, ..., 28 + j, and a lane's accumulators hold eight dimensions in a row.
#pragma once
#include <audit_ldmatrix.h>

#include "scores.cuh"

namespace grouped {
namespace direct {

template <int D>
constexpr int blocks_of_warp = D / 32 > kWarps ? D / 32 / kWarps : 1;

template <int D>
using Numerator = float[blocks_of_warp<D>][4][4];

__device__ __forceinline__ void load_registers(unsigned (&registers)[4], const uint4* from) {
  const uint4 four = *from;
  registers[0] = four.x;
  registers[1] = four.y;
  registers[2] = four.z;
  registers[3] = four.w;
}

// The B fragments of a block's four products, for 16 tokens: v points to the lane's word of token 2t.
template <int D>
__device__ __forceinline__ void load_values(unsigned (&values)[4][2], const unsigned* v) {
  constexpr int token = sizeof(TokenRow<D>) / 4;  // words
  unsigned low[2];
  unsigned high[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) interleave(low[i], high[i], v[8 * i * token], v[(8 * i + 1) * token]);
#pragma unroll
  for (int i = 0; i < 2; ++i) values[0][i] = decode_low(low[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i) values[1][i] = decode_high(low[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i) values[2][i] = decode_low(high[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i) values[3][i] = decode_high(high[i]);
}

// The same from two halves of a transposed load: in each register two tokens' bytes of two dimensions, 2g and 2g + 1
// of 16. Lane l points to token l % 16 and to the block's piece l / 16. So product j of the block has the dimensions
// 16 (j / 2) + 2g + j % 2.
__device__ __forceinline__ void load_transposed_values(unsigned (&values)[4][2], const uint4* v) {
  unsigned words[4];
  audit::load_matrices<true>(words, v);
#pragma unroll
  for (int piece = 0; piece < 2; ++piece) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned pairs = __byte_perm(words[2 * piece + i], 0, 0x3120);
      values[2 * piece][i] = decode_low(pairs);
      values[2 * piece + 1][i] = decode_high(pairs);
    }
  }
}

// out = fma(out, rescale, tile) for one tile of the chunk. tile is P[0:16]V, R[0:16]V', P[16:32]V, R[16:32]V', each
// one's C the D before. p, rescale and v point to what is this lane's; R stands behind P.
template <int D, int Halves, class Word>
__device__ __forceinline__ void add_tile(Numerator<D>& out, const uint4* p, const float* rescale, const Word* v) {
  unsigned weights[2][4];
  unsigned rests[2][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    load_registers(weights[h], p + 32 * h);
    load_registers(rests[h], p + 32 * (h + 2));
  }
#pragma unroll
  for (int block = 0; block < blocks_of_warp<D>; ++block) {
    float tile[4][4] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      unsigned values[4][2];
      if constexpr (sizeof(Word) == 16) {
        load_transposed_values(values, v + 2 * block + 16 * h * (sizeof(TokenRow<D>) / 16));
      } else {
        load_values<D>(values, v + 8 * block + 16 * h * (sizeof(TokenRow<D>) / 4));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) audit::product_m16n8k16(tile[j], weights[h], values[j], tile[j]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned shrunk[2] = {shrink_pair(values[j][0]), shrink_pair(values[j][1])};
        audit::product_m16n8k16(tile[j], rests[h], shrunk, tile[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 2 * Halves; ++e) {
        out[block][j][e] = __fmaf_rn(out[block][j][e], rescale[8 * (e / 2)], tile[j][e]);
      }
    }
  }
}

// The chunk's first `tiles` tiles, V in m.v[buffer].
template <int D, int Halves>
__device__ __forceinline__ void add_chunk(Numerator<D>& out, const ChunkMemory<D>& m, int warp, int buffer,
                                          int tiles) {
  const int first_block = warp * blocks_of_warp<D>;
  if (first_block * 32 >= D) return;  // more warps than blocks
  const int lane = threadIdx.x % 32;
  const uint4* p = &m.weights.tiles[0].p[0][lane];
  const float* rescale = &m.weights.tiles[0].rescale[lane / 4];
  const unsigned* v = reinterpret_cast<const unsigned*>(m.v[buffer][2 * (lane % 4)]) + 8 * first_block + lane / 4;
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    add_tile<D, Halves>(out, p, rescale, v);
    p += sizeof(TileWeights) / sizeof(uint4);
    rescale += sizeof(TileWeights) / sizeof(float);
    v += kTileTokens * (sizeof(TokenRow<D>) / 4);
  }
}

// out * v_scale to partial, whose first slot of this row tile is partial_row. -0 is never stored. Transposed: by
// load_transposed_values.
template <int D, int Halves, bool Transposed = false>
__device__ __forceinline__ void store_numerator(const Numerator<D>& out, int warp, float v_scale, int slots,
                                                float* partial_row) {
  const int lane = threadIdx.x % 32;
  const int first_block = warp * blocks_of_warp<D>;
  if (first_block * 32 >= D) return;
#pragma unroll
  for (int half = 0; half < Halves; ++half) {
    const int slot = lane / 4 + 8 * half;
    if (slot >= slots) continue;
#pragma unroll
    for (int block = 0; block < blocks_of_warp<D>; ++block) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float value[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float numerator =
              (Transposed ? out[block][2 * e + j % 2][2 * half + j / 2] : out[block][j][2 * half + e]) * v_scale;
          value[j] = numerator + 0.0f;
        }
        const int d = 32 * (first_block + block) + (Transposed ? 16 * e + 4 * (lane % 4) : 8 * (lane % 4) + 4 * e);
        *reinterpret_cast<float4*>(partial_row + slot * D + d) = make_float4(value[0], value[1], value[2], value[3]);
      }
    }
  }
}

}  // namespace direct
}  // namespace grouped
