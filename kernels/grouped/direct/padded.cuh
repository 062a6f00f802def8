// K and V in shared memory as they lie in storage, each token's row padded by 16 bytes: the tile copy, QK and PV.
//
// With the padding, the words that a warp reads at once lie in different banks: of K four in a row of 8 tokens, of V
// eight in a row of every other token.
#pragma once
#include "block.cuh"
#include "numerator.cuh"
#include "scores.cuh"

namespace grouped::direct {

template <int D>
using PaddedRow = uint4[D / 16 + 1];

// Tile copy by one warp: 32 rows of K or V, whole or Vectors vectors of 16 dimensions from first_vector on. A token >=
// total becomes zeros and is not read. A dense tile, the case that matters, has no arithmetic between its copies.
template <int D, int Vectors = D / 16>
__device__ __forceinline__ void copy_padded(audit::CopyQueue& copies, PaddedRow<D>* to, const paged::Storage& storage,
                                            const TileAddress& address, int load_bytes, int first_token, int dense,
                                            int total, int first_vector = 0) {
  constexpr int rows = 32 / Vectors;  // copied by a warp at once
  static_assert(rows <= kGroupTokens, "of one page");
  const int lane = threadIdx.x % 32;
  const int vector = first_vector + lane % Vectors;
  const int first_row = Vectors == 4 ? lane / 8 + lane / 4 % 2 * 4 : lane / Vectors;  // 8 lanes write to all banks
  if (first_token + kTileTokens <= dense) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned char* const from =
          storage.bytes + static_cast<unsigned>(address.physical_page[i]) * storage.page_stride +
          static_cast<unsigned>((address.position[i] + first_row) * D + vector * 16);
#pragma unroll
      for (int row = 0; row < kGroupTokens; row += rows) {
        copies.copy16(&to[i * kGroupTokens + row + first_row][vector], from + row * D);
      }
    }
    return;
  }
#pragma unroll 1
  for (int row = first_row; row < kTileTokens; row += rows) {
    const bool second = row >= kGroupTokens;
    const int physical_page = second ? address.physical_page[1] : address.physical_page[0];
    const int position = (second ? address.position[1] : address.position[0]) + row % kGroupTokens;
    const unsigned char* const from = paged::token_bytes(storage, physical_page, position) + vector * 16;
    copy_vector(copies, &to[row][vector], from, load_bytes, first_token + row < total);
  }
}

// QK with q in registers: sum[j] is the accumulator of tokens 8j to 8j + 7 of this warp's tile, whose rows in shared
// memory are `keys`.
template <int D, int Elements>
__device__ __forceinline__ void sum_products(float (&sum)[4][4], const unsigned (&q)[D / 16][4],
                                             const PaddedRow<D>* keys) {
  const int g = threadIdx.x % 32 / 4;
  float compensation[4][Elements];
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    float t[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      unsigned operand[2];
      load_keys(operand, keys[8 * j + g], step);
      audit::product_m16n8k16(t[j], q[step], operand, zero);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) kahan_add<D / 16>(sum[j][e], compensation[j][e], t[j][e], step);
    }
  }
}

// QK with q in shared memory: the products of one step for the 32 tokens of a tile.
template <int D>
__device__ __forceinline__ void multiply_padded(float (&t)[4][4], const uint4* q, const PaddedRow<D>* keys, int step) {
  const int lane = threadIdx.x % 32;
  unsigned queries[4];
  load_registers(queries, q + 32 * step);
  unsigned words[4];
  if constexpr (kWordsOfKeys) audit::load_matrices<false>(words, keys[lane] + step);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned operand[2];
    if constexpr (kWordsOfKeys) {
      operand[0] = decode_low(words[j]);
      operand[1] = decode_high(words[j]);
    } else {
      load_keys(operand, keys[8 * j + lane / 4], step);
    }
    audit::product_m16n8k16(t[j], queries, operand, zero);
  }
}

// The sum of those products, by code for StepsAtOnce steps. Where that is not all of them, the second step's c is +0
// and the last one's is dropped afterwards.
template <int D, int Elements, int StepsAtOnce>
__device__ __forceinline__ void sum_shared_products(float (&sum)[4][4], const uint4* q, const PaddedRow<D>* keys) {
  constexpr int steps = D / 16;
  constexpr bool rolled = StepsAtOnce < steps;
  float compensation[4][Elements] = {};
  float t[4][4];
  multiply_padded<D>(t, q, keys, 0);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int e = 0; e < Elements; ++e) kahan_add<steps>(sum[j][e], compensation[j][e], t[j][e], 0);
  }
#pragma unroll StepsAtOnce
  for (int step = 1; step < steps; ++step) {
    multiply_padded<D>(t, q, keys, step);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) {
        kahan_add<steps>(sum[j][e], compensation[j][e], t[j][e], rolled ? 2 : step);
      }
    }
  }
}

// Of two tokens' words the bytes 0 and 1, and the bytes 2 and 3: each byte's pair in 16 bits.
__device__ __forceinline__ void interleave(unsigned& low, unsigned& high, unsigned first, unsigned second) {
  low = __byte_perm(first, second, 0x5140);
  high = __byte_perm(first, second, 0x7362);
}

// The B fragments of PV for 16 tokens and a slice, by words: v points to the lane's word of token 2t. Lane (g, t)
// reads the word at 4g of the slice, of the tokens 2t, 2t + 1, 2t + 8 and 2t + 9. Byte j of it is column g of product
// j, so that product j has the dimensions j, 4 + j, ..., 28 + j and a lane's accumulators hold eight in a row.
template <int D>
__device__ __forceinline__ void load_values(unsigned (&values)[4][2], const unsigned* v) {
  constexpr int token = sizeof(PaddedRow<D>) / 4;  // words
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

// PV: out = fma(out, rescale, tile) for one tile of the chunk; tile is P[0:16]V, R[0:16]V', P[16:32]V, R[16:32]V',
// each one's C the D before. p, rescale and v point to this lane's own; R lies behind P. Word: unsigned where V is
// loaded by words, uint4 where it is transposed.
template <int D, int Halves, class Word>
__device__ __forceinline__ void accumulate_padded(Numerator<D>& out, const uint4* p, const float* rescale,
                                                  const Word* v) {
  unsigned weights[2][4];
  unsigned rests[2][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    load_registers(weights[h], p + 32 * h);
    load_registers(rests[h], p + 32 * (h + 2));
  }
#pragma unroll
  for (int slice = 0; slice < slices_of_warp<D>; ++slice) {
    float tile[4][4] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      unsigned values[4][2];
      if constexpr (sizeof(Word) == 16) {
        load_transposed_values(values, v + 2 * slice + 16 * h * (sizeof(PaddedRow<D>) / 16));
      } else {
        load_values<D>(values, v + 8 * slice + 16 * h * (sizeof(PaddedRow<D>) / 4));
      }
      multiply_values(tile, weights[h], rests[h], values);
    }
    rescale_and_add<Halves>(out[slice], tile, rescale);
  }
}

}  // namespace grouped::direct
