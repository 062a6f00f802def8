// Operands of the tensor core: e4m3 bytes and f16 numbers become registers of A and B fragments.
//
// A lane is (g, t) = (lane / 4, lane % 4). It holds rows g and g + 8 of a product's accumulator at columns 2t and
// 2t + 1: elements 0, 1 and 2, 3. A register holds two halves.
#pragma once
#include <audit_ldmatrix.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "audit_product.h"
#include "chunk.cuh"

namespace grouped::direct {

__device__ __forceinline__ unsigned bits_of(const __half2_raw& pair) {
  return pair.x | static_cast<unsigned>(pair.y) << 16;
}

__device__ __forceinline__ __half2 pair_of(unsigned bits) {
  __half2_raw pair;
  pair.x = static_cast<unsigned short>(bits);
  pair.y = static_cast<unsigned short>(bits >> 16);
  return pair;
}

// Two e4m3 bytes: exact.
__device__ __forceinline__ unsigned decode_pair(unsigned short bytes) {
  return bits_of(__nv_cvt_fp8x2_to_halfraw2(bytes, __NV_E4M3));
}

// The lower or the upper two of four e4m3 bytes. As one of two 16-bit numbers in a register they are converted in
// place; a shift would cost an instruction.
__device__ __forceinline__ unsigned decode_low(unsigned bytes) {
  return decode_pair(reinterpret_cast<const ushort2&>(bytes).x);
}

__device__ __forceinline__ unsigned decode_high(unsigned bytes) {
  return decode_pair(reinterpret_cast<const ushort2&>(bytes).y);
}

// V * 2^-11, exact in f16 for every finite e4m3.
__device__ __forceinline__ unsigned shrink_pair(unsigned pair) {
  return bits_of(__hmul2(pair_of(pair), __half2half2(__ushort_as_half(0x1000))));
}

__device__ __forceinline__ void load_registers(unsigned (&registers)[4], const uint4* from) {
  const uint4 four = *from;
  registers[0] = four.x;
  registers[1] = four.y;
  registers[2] = four.z;
  registers[3] = four.w;
}

// Where one exact step of the tensor core adds all 16 products, their order is free. A lane then takes four dimensions
// of q and K in a row: one word of K. Elsewhere the k values keep their order.
constexpr bool kWordsOfKeys = audit::kProductStep == 16;

// The first of the two dimensions in register `part` of a lane in step `step` of QK.
__device__ __forceinline__ int first_dimension(int step, int t, int part) {
  return kWordsOfKeys ? 16 * step + 4 * t + 2 * part : 16 * step + 2 * t + 8 * part;
}

// q of 16 slots as the A fragment of one step. Padding and rows of length 0, whose q may hold anything, become zeros.
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

// q of 16 slots as A fragments in shared memory, by all warps of a block with two roles.
template <int D>
using Queries = uint4[D / 16][32];  // the four registers of each lane

template <int G, int D>
__device__ __forceinline__ void store_queries(Queries<D>& q, const paged::Inputs& in, int first_slot) {
  for (int step = threadIdx.x / 32; step < D / 16; step += kRoleThreads / 32) {
    unsigned registers[4];
    load_query<G, D>(registers, in, first_slot, step);
    q[step][threadIdx.x % 32] = make_uint4(registers[0], registers[1], registers[2], registers[3]);
  }
}

// The B fragment of 8 tokens in one step of QK: `token` is this lane's.
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

// The B fragments of PV for 16 tokens and a slice of 32 dimensions, from a transposed load. Lane l points to token
// l % 16 and to vector l / 16 of the slice. Each register then holds the bytes of two tokens at two dimensions, 2g and
// 2g + 1 of 16: product j of the slice has the dimensions 16 (j / 2) + 2g + j % 2.
__device__ __forceinline__ void load_transposed_values(unsigned (&values)[4][2], const uint4* v) {
  unsigned words[4];
  audit::load_matrices<true>(words, v);
#pragma unroll
  for (int vector = 0; vector < 2; ++vector) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned pairs = __byte_perm(words[2 * vector + i], 0, 0x3120);
      values[2 * vector][i] = decode_low(pairs);
      values[2 * vector + 1][i] = decode_high(pairs);
    }
  }
}

}  // namespace grouped::direct
