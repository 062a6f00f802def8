// QK of the streamed variants: 16 threads a token. Each stands for the two lanes 2u and 2u + 1 of the contract's 32,
// whose bytes of K are 16-bit pieces, piece r at dimension 32r + 2u.
//
// Lane l of a warp has u = 8h + c with c = l / 4 and h = (l / 2) % 2. It has the odd ones of 8 tokens if l is odd, four
// at a time, in slots. Two lanes that add the same values in a tree divide the work: each sends the half that the other
// keeps. Slot s holds the token pair s ^ 2h, and the lanes with c >= 4 have the heads in another order, so that the
// registers to send are always the same.
#pragma once
#include <audit_ldmatrix.h>

#include <cuda_fp8.h>

#include "token_stream.cuh"

namespace scalar {

// Two e4m3 bytes of a word, the lower or the upper ones, to f32, exactly.
__device__ __forceinline__ float2 decode_pair(unsigned word, bool upper) {
  ushort2 pair;  // not a shift: one conversion can read the upper half of a register
  memcpy(&pair, &word, sizeof(pair));
  const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(upper ? pair.y : pair.x, __NV_E4M3);
  return make_float2(__half2float(__ushort_as_half(halves.x)), __half2float(__ushort_as_half(halves.y)));
}

constexpr int kScored = 8;  // tokens that a warp scores at once

template <int G, int D>
class GroupQuery {
  static constexpr int kPieces = D / 32;
  static constexpr int kWords = kPieces / 2;  // word 4n + i of load n: pieces of slot (4n + i) / kWords
  static constexpr int kSlots = 4;
  static constexpr int kLoads = kSlots * kWords / 4;
  static constexpr bool kSplitHeads = G % 2 == 0;
  static constexpr int kKept = kSplitHeads ? G / 2 : G;
  static_assert(kPieces % 2 == 0 && kScored == 2 * kSlots, "a word is two pieces, a slot is two tokens");

 public:
  using Words = unsigned[kLoads][4];
  using Chains = float[kSlots][G][2];
  using Sums = float[kKept][2];

  // A barrier must separate this from the stores of m.q.
  template <class Memory>
  __device__ __forceinline__ explicit GroupQuery(const Memory& m) {
    const int lane = threadIdx.x % 32;
    const int u = 8 * half() + lane / 4;
#pragma unroll
    for (int k = 0; k < G; ++k) {
#pragma unroll
      for (int r = 0; r < kPieces; ++r) {
#pragma unroll
        for (int e = 0; e < 2; ++e) value_[k][r][e] = __half2float(m.q[head(k)][32 * r + 2 * u + e]);
      }
    }
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      // The row whose address this lane supplies: bit 2 is h, bit 1 the parity of the token, bit 0 that of the piece.
      const int row = lane % 8;
      const int word = 4 * n + lane / 8;
      const int token = 2 * (word / kWords ^ 2 * (row / 4)) + row / 2 % 2;
      const int x = 2 * (2 * (word % kWords) + row % 2) + row / 4;
      row_[n] = token * D + swizzled<D>(token, x) * kVector;
      audit::keep(row_[n]);
    }
    const bool writer = lane / 4 % 2 == 0 && (kSplitHeads || lane / 16 == 0);
    own_token_ = writer ? 4 * half() + lane / 8 % 2 * 2 + lane % 2 : kPartitionTokens;
    own_score_ = head(0) * Memory::kScoreRow + own_token_;
    audit::keep(own_token_);
    audit::keep(own_score_);
  }

  // The lane's bytes of 8 tokens of a stage.
  __device__ __forceinline__ void load(Words& word, const unsigned char* stage) const {
#pragma unroll
    for (int n = 0; n < kLoads; ++n) audit::load_transposed(word[n], stage + row_[n]);
  }

  // The chains of the two lanes of the contract for which this lane stands.
  __device__ __forceinline__ void multiply(Chains& acc, const Words& word) const {
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
#pragma unroll
      for (int r = 0; r < kPieces; ++r) {
        const float2 key = decode_pair(word[(s * kWords + r / 2) / 4][(s * kWords + r / 2) % 4], r % 2 != 0);
#pragma unroll
        for (int k = 0; k < G; ++k) {
          acc[s][k][0] = __fmaf_rn(value_[k][r][0], key.x, r == 0 ? 0.0f : acc[s][k][0]);
          acc[s][k][1] = __fmaf_rn(value_[k][r][1], key.y, r == 0 ? 0.0f : acc[s][k][1]);
        }
      }
    }
  }

  // The tree's steps 16, 8, 4 and 2: x is what the contract's lanes 0 and 1 have of one token for the kept heads.
  __device__ __forceinline__ void add_lanes(Sums& x, const Chains& acc) const {
    float sixteen[2][G][2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int k = 0; k < G; ++k) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          sixteen[s][k][e] = acc[s][k][e] + __shfl_xor_sync(paged::kAllLanes, acc[s + 2][k][e], 2);
        }
      }
    }
    const bool second = threadIdx.x / 8 % 2 != 0;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float eight[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const float sent = sixteen[s][kSplitHeads ? k + kKept : k][e];
          eight[s] = sixteen[s][k][e] + __shfl_xor_sync(paged::kAllLanes, sent, 16);
        }
        const float kept = second ? eight[1] : eight[0];
        const float four = kept + __shfl_xor_sync(paged::kAllLanes, second ? eight[0] : eight[1], 8);
        x[k][e] = four + __shfl_xor_sync(paged::kAllLanes, four, 4);
      }
    }
  }

  // Stores score[head][first + i] of those of the 8 tokens i that exist.
  template <class Memory>
  __device__ __forceinline__ void store(Memory& m, const Sums& x, int first, int tokens, float score_scale) const {
    if (first + own_token_ >= tokens) return;
    float* const to = &m.score[0][0] + own_score_ + first;
#pragma unroll
    for (int k = 0; k < kKept; ++k) to[k * Memory::kScoreRow] = (x[k][0] + x[k][1]) * score_scale;
  }

 private:
  static __device__ __forceinline__ int half() { return threadIdx.x / 2 % 2; }

  // The head in register k.
  static __device__ __forceinline__ int head(int k) {
    if (!kSplitHeads || threadIdx.x / 16 % 2 == 0) return k;
    return k < kKept ? k + kKept : k - kKept;
  }

  float value_[G][kPieces][2];
  int row_[kLoads];  // in bytes from the beginning of a stage
  int own_token_;    // of a stage; kPartitionTokens for a lane that stores none
  int own_score_;
};

}  // namespace scalar
