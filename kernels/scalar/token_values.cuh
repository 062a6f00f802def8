// PV of `token_groups`: a warp adds up 64 dimensions, a thread two of them for all heads, over ascending tokens.
#pragma once
#include "token_scores.cuh"
#include "token_weights.cuh"

namespace scalar {

constexpr int kAdded = 8;  // tokens that a warp adds up at once

template <int G>
class GroupValues {
 public:
  // What a lane needs of 8 tokens. Words are tokens 2i and 2i + 1: dimensions 16j + 2c and the next, j = lane % 4,
  // c = lane / 4.
  struct Batch {
    unsigned word[kAdded / 2];
    float p[G][kAdded];
  };

  // Tokens from `first` on, at `values` in a stage.
  template <class Memory>
  __device__ __forceinline__ void load(Batch& to, const Memory& m, const unsigned char* values, int first) const {
    const int lane = threadIdx.x % 32;
    load_transposed(to.word, values + (lane / 8 * 2 + lane % 2) * kSlab + lane / 2 % 4 * kChunk);
#pragma unroll
    for (int head = 0; head < G; ++head) {
      const float4* const from = reinterpret_cast<const float4*>(&m.score[head][first]);
#pragma unroll
      for (int i = 0; i < kAdded / 4; ++i) {
        const float4 four = from[i];
        to.p[head][4 * i] = four.x;
        to.p[head][4 * i + 1] = four.y;
        to.p[head][4 * i + 2] = four.z;
        to.p[head][4 * i + 3] = four.w;
      }
    }
  }

  // The first `count` tokens are real.
  template <bool Full>
  __device__ __forceinline__ void add(const Batch& batch, int count = kAdded) {
#pragma unroll
    for (int i = 0; i < kAdded; ++i) {
      if (!Full && i >= count) break;
      const float2 value = decode_pair(batch.word[i / 2], i % 2 != 0);
#pragma unroll
      for (int head = 0; head < G; ++head) {
        acc_[head][0] = __fmaf_rn(batch.p[head][i], value.x, acc_[head][0]);
        acc_[head][1] = __fmaf_rn(batch.p[head][i], value.y, acc_[head][1]);
      }
    }
  }

  template <int D, class Memory>
  __device__ __forceinline__ void store(const Memory& m, const paged::Inputs& in, int partition, float* partial) const {
    const int d = threadIdx.x / 32 * kSlab + threadIdx.x % 4 * 16 + threadIdx.x % 32 / 4 * 2;
#pragma unroll
    for (int head = 0; head < G; ++head) {
      const float factor = (1.0f / over_warps<false>(m.sum[head])) * in.v_scale;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        partial[workspace_row(head, partition) * D + d + e] = acc_[head][e] * factor;
      }
    }
  }

 private:
  float acc_[G][2] = {};
};

// A partition with tokens, by one block, as `Schedule` says. partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <class Schedule, int G, int D>
__device__ __forceinline__ void run_token_groups(GroupMemory<G, D, typename Schedule::Ring>& m, const paged::Inputs& in,
                                                 const Partition& partition, float* partial, float* maximum,
                                                 float* sums) {
  static_assert(D % kSlab == 0 && D / kSlab <= kGroupWarps, "a warp has one slab");
  locate_runs(m, in, partition);
  __syncthreads();
  TokenStream<D, typename Schedule::Ring> stream(m, in, partition.tokens);
  for (int i = threadIdx.x; i < G * D; i += kGroupThreads) m.q[i / D][i % D] = in.q[i];
  __syncthreads();
  {
    const GroupQuery<G, D> query(m);
    Schedule::score(m, stream, query, partition.tokens, in.scale * in.k_scale);
  }
  __syncthreads();
  weigh_scores<G>(m, partition.tokens);
  __syncthreads();

  const int head = threadIdx.x;
  if (head < G) {
    maximum[workspace_row(head, partition.index)] = over_warps<true>(m.maximum[head]);
    sums[workspace_row(head, partition.index)] = over_warps<false>(m.sum[head]);
  }
  if (threadIdx.x / 32 >= D / kSlab) return;
  GroupValues<G> values;
  Schedule::add(m, stream, values, partition.tokens);
  values.template store<D>(m, in, partition.index, partial);
}

}  // namespace scalar
