// K and V in shared memory without padding. A token's row begins at a multiple of its own length, so that 128 bytes of
// storage lie in 128 aligned bytes there; those of a padded row straddle two lines and are written in two parts. What
// would have all rows' words in the same banks is undone by the order of the 16-byte pieces within a row.
#pragma once
#include "audit_keep.h"
#include "numerator.cuh"

namespace grouped {
namespace direct {

template <int D>
using WholeRow = uint4[D / 16];

// Where piece `piece` of row `row` lies. Eight rows in turn have a piece in different banks. Of rows whose bits differ
// it is the exclusive or, like the row itself.
template <int D>
__device__ __forceinline__ int swizzled(int row, int piece) {
  static_assert(D == 64 || D % 128 == 0, "rows of 64 bytes, or of whole lines of 128");
  return piece ^ (D == 64 ? row / 2 % 4 : row % 8);
}

// copy_tile to swizzled rows, whole.
template <int D>
__device__ __forceinline__ void copy_swizzled(audit::CopyQueue& copies, WholeRow<D>* to, const paged::Storage& storage,
                                              const TilePlaces& places, int load_bytes, int first_token, int dense,
                                              int total) {
  constexpr int pieces = D / 16;
  constexpr int rows = 32 / pieces;  // that a warp copies at once
  const int lane = threadIdx.x % 32;
  const int piece = lane % pieces;
  const int first_row = lane / pieces;
  if (first_token + kTileTokens <= dense) {
    const int own = swizzled<D>(first_row, piece);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned char* const from =
          storage.bytes + static_cast<unsigned>(places.physical_page[i]) * storage.page_stride +
          static_cast<unsigned>((places.position[i] + first_row) * D + piece * 16);
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
    const int physical_page = second ? places.physical_page[1] : places.physical_page[0];
    const int position = (second ? places.position[1] : places.position[0]) + row % kGroupTokens;
    const unsigned char* const from = paged::token_bytes(storage, physical_page, position) + piece * 16;
    uint4* const place = &to[row][swizzled<D>(row, piece)];
    const bool read = first_token + row < total;
    if (load_bytes == 16) {
      copies.copy16(place, from, read);
    } else if (!read) {
      *place = make_uint4(0, 0, 0, 0);
    } else {
      *place = load_bytes == 8 ? load_chunk<8>(from) : load_chunk<1>(from);
    }
  }
}

// multiply_step of a warp's 32 tokens.
template <int D>
__device__ __forceinline__ void multiply_swizzled(float (&t)[4][4], const uint4 (&q)[D / 16][32],
                                                  const WholeRow<D>* keys, int step, int lane) {
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

// The compensated sum of the products of steps First to End - 1, of all D / 16.
template <int D, int Elements, int First, int End>
__device__ __forceinline__ void sum_steps(float (&sum)[4][4], float (&compensation)[4][Elements],
                                          const uint4 (&q)[D / 16][32], const WholeRow<D>* keys) {
  int lane = threadIdx.x % 32;
  audit::keep(lane);  // eight addresses follow from it, which would stay in registers through all phases
#pragma unroll
  for (int step = First; step < End; ++step) {
    float t[4][4];
    multiply_swizzled<D>(t, q, keys, step, lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) kahan_add<D / 16>(sum[j][e], compensation[j][e], t[j][e], step);
    }
  }
}

// add_tile of the dimensions from 16 * first_piece on. p and rescale point to what is this lane's; R stands behind P.
template <int D, int Halves>
__device__ __forceinline__ void add_swizzled(Numerator<D>& out, const uint4* p, const float* rescale,
                                             const WholeRow<D>* tokens, int first_piece) {
  const int lane = threadIdx.x % 32;
  unsigned weights[2][4];
  unsigned rests[2][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    load_registers(weights[h], p + 32 * h);
    load_registers(rests[h], p + 32 * (h + 2));
  }
#pragma unroll
  for (int block = 0; block < blocks_of_warp<D>; ++block) {
    const uint4* const v = &tokens[lane % 16][swizzled<D>(lane % 16, first_piece + 2 * block + lane / 16)];
    float tile[4][4] = {};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      unsigned values[4][2];
      load_transposed_values(values, v + 16 * h * (D / 16));
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

}  // namespace direct
}  // namespace grouped
