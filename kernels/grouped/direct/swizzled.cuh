// K and V in shared memory as they lie in storage, 16 bytes at a time, without padding: the tile copy, QK and PV.
//
// A token's row begins at a multiple of its own length, so 128 bytes of storage lie in 128 aligned bytes; those of a
// padded row straddle two lines and are written in two parts. The order of the 16-byte vectors within a row keeps
// rows out of each other's banks.
#pragma once
#include "block.cuh"
#include "numerator.cuh"

namespace grouped::direct {

template <int D>
using SwizzledRow = uint4[D / 16];

// Where vector `vector` of row `row` lies: eight rows in turn have it in different banks. The position is an exclusive
// or, so that of row a ^ b is swizzled(b, swizzled(a, vector)) where a and b share no bits.
template <int D>
__device__ __forceinline__ int swizzled(int row, int vector) {
  static_assert(D == 64 || D % 128 == 0, "rows of 64 bytes, or of whole lines of 128");
  return vector ^ (D == 64 ? row / 2 % 4 : row % 8);
}

// Tile copy by one warp: 32 whole rows of K or V. A token >= total becomes zeros and is not read. A dense tile, the
// case that matters, has no arithmetic between its copies.
template <int D>
__device__ __forceinline__ void copy_swizzled(audit::CopyQueue& copies, SwizzledRow<D>* to,
                                              const paged::Storage& storage, const TileAddress& address,
                                              int load_bytes, int first_token, int dense, int total) {
  constexpr int vectors = D / 16;
  constexpr int rows = 32 / vectors;  // copied by a warp at once
  const int lane = threadIdx.x % 32;
  const int vector = lane % vectors;
  const int first_row = lane / vectors;
  if (first_token + kTileTokens <= dense) {
    const int own = swizzled<D>(first_row, vector);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned char* const from =
          storage.bytes + static_cast<unsigned>(address.physical_page[i]) * storage.page_stride +
          static_cast<unsigned>((address.position[i] + first_row) * D + vector * 16);
#pragma unroll
      for (int row = 0; row < kGroupTokens; row += rows) {
        copies.copy16(&to[i * kGroupTokens + row + first_row][swizzled<D>(row, own)], from + row * D);
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
    copy_vector(copies, &to[row][swizzled<D>(row, vector)], from, load_bytes, first_token + row < total);
  }
}

// QK: the products of one step for the 32 tokens of a tile.
template <int D>
__device__ __forceinline__ void multiply_swizzled(float (&t)[4][4], const Queries<D>& q, const SwizzledRow<D>* keys,
                                                  int step, int lane) {
  unsigned queries[4];
  load_registers(queries, &q[step][lane]);
  unsigned words[4];
  if constexpr (kWordsOfKeys) audit::load_matrices<false>(words, &keys[lane][swizzled<D>(lane, step)]);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned operand[2];
    if constexpr (kWordsOfKeys) {
      operand[0] = decode_low(words[j]);
      operand[1] = decode_high(words[j]);
    } else {
      const int token = 8 * j + lane / 4;
      load_keys(operand, &keys[token][swizzled<D>(token, step)], 0);
    }
    audit::product_m16n8k16(t[j], queries, operand, zero);
  }
}

// PV: out = fma(out, rescale, tile) for one tile, in the dimensions from 16 * first_vector on; tile is P[0:16]V,
// R[0:16]V', P[16:32]V, R[16:32]V', each one's C the D before. p and rescale point to this lane's own; R lies behind P.
template <int D, int Halves>
__device__ __forceinline__ void accumulate_swizzled(Numerator<D>& out, const uint4* p, const float* rescale,
                                                    const SwizzledRow<D>* tokens, int first_vector) {
  const int lane = threadIdx.x % 32;
  unsigned weights[2][4];
  unsigned rests[2][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    load_registers(weights[h], p + 32 * h);
    load_registers(rests[h], p + 32 * (h + 2));
  }
#pragma unroll
  for (int slice = 0; slice < slices_of_warp<D>; ++slice) {
    const uint4* const v = &tokens[lane % 16][swizzled<D>(lane % 16, first_vector + 2 * slice + lane / 16)];
    float tile[4][4] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      unsigned values[4][2];
      load_transposed_values(values, v + 16 * h * (D / 16));
      multiply_values(tile, weights[h], rests[h], values);
    }
    rescale_and_add<Halves>(out[slice], tile, rescale);
  }
}

}  // namespace grouped::direct
