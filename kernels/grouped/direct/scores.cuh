// q and K as the tensor core's fragments, and the compensated sum of their products, all in registers.
//
// A lane is (g, t) = (lane / 4, lane % 4). Of a product's accumulator it holds the rows g and g + 8 at the columns
// 2t and 2t + 1: elements 0, 1 and 2, 3.
#pragma once
#include "audit_product.h"
#include "chunk.cuh"
#include "pairs.cuh"

namespace grouped {
namespace direct {

// Which dimensions the two registers of a lane hold in step `step` of QK: `first` and the one after it. Where one
// exact step has all 16 products their order is free, and a lane takes four in a row: one word of K.
constexpr bool kWordsOfKeys = audit::kProductStep == 16;

__device__ __forceinline__ int first_dimension(int step, int t, int part) {
  return kWordsOfKeys ? 16 * step + 4 * t + 2 * part : 16 * step + 2 * t + 8 * part;
}

// q of 16 slots as the A fragment of one step. Padding and rows of length 0, whose q may hold anything, are zeros.
template <int G, int D>
__device__ __forceinline__ void load_query(unsigned (&q)[4], const paged::Inputs& in, int first_slot, int step) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int slot = first_slot + lane / 4 + 8 * half;
    const bool live = slot / G < in.rows && in.lengths[slot / G] > 0;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      unsigned pair = 0;
      if (live) {
        const __half* const first = in.q + slot * D + first_dimension(step, lane % 4, part);
        pair = __half_as_ushort(first[0]) | static_cast<unsigned>(__half_as_ushort(first[1])) << 16;
      }
      q[2 * part + half] = pair;
    }
  }
}

// The B fragment of 8 tokens in one step: `token` is this lane's.
__device__ __forceinline__ void load_keys(unsigned (&keys)[2], const uint4* token, int step) {
  const unsigned* const words = reinterpret_cast<const unsigned*>(token + step);
  const int t = threadIdx.x % 4;
  if constexpr (kWordsOfKeys) {
    const unsigned word = words[t];
    keys[0] = decode_low(word);
    keys[1] = decode_high(word);
  } else {
    keys[0] = decode_pair(static_cast<unsigned short>(words[t / 2] >> 16 * (t % 2)));
    keys[1] = decode_pair(static_cast<unsigned short>(words[2 + t / 2] >> 16 * (t % 2)));
  }
}

// The sum of `Steps` products of which t is number `step`. The first gives s = t and c = 0, since t is never -0;
// the second has y = t; the last c is dropped.
template <int Steps>
__device__ __forceinline__ void kahan_add(float& sum, float& compensation, float t, int step) {
  if (step == 0) {
    sum = t;
    return;
  }
  const float y = step == 1 ? t : t - compensation;
  const float next = sum + y;
  if (step < Steps - 1) compensation = (next - sum) - y;
  sum = next;
}

// s[j] = the accumulator of tokens 8j to 8j + 7 of this warp's tile, whose rows in shared memory are `keys`.
template <int D, int Elements>
__device__ __forceinline__ void sum_products(float (&sum)[4][4], const unsigned (&q)[D / 16][4],
                                             const TokenRow<D>* keys) {
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

}  // namespace direct
}  // namespace grouped
