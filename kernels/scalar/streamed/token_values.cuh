// PV of the streamed variants: a warp sums 64 dimensions over ascending tokens.
#pragma once
#include <audit_ldmatrix.h>

#include "token_scores.cuh"
#include "token_weights.cuh"

namespace scalar {

constexpr int kAdded = 8;  // tokens that a warp sums at once

// A lane has one of Groups groups of the heads, for Groups pairs of dimensions. With more groups it reads fewer p and
// decodes more bytes of V.
template <int G, int Groups>
class GroupValues {
  static constexpr int kHeads = G / Groups;
  static constexpr int kColumns = kSlab / kVector / Groups;  // vectors of a token between a lane's pairs
  static_assert(G % Groups == 0 && kColumns * Groups == 4, "groups have as many heads, and vectors");

 public:
  // The operands of a lane for 8 tokens. Words [g][i] are tokens 2i and 2i + 1: dimensions 16j + 2c and the next,
  // j = lane % 4 % kColumns + g * kColumns, c = lane / 4.
  struct Batch {
    unsigned word[Groups][kAdded / 2];
    float p[kHeads][kAdded];
  };

  // Loads tokens from `first` on, at `values` in a stage. Tokens past the last one have the weight +0 of weigh_scores.
  template <class Memory>
  __device__ __forceinline__ void load(Batch& to, const Memory& m, const unsigned char* values, int first) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      const int j = lane / 2 % 4 % kColumns + g * kColumns;
      audit::load_transposed(to.word[g], values + (lane / 8 * 2 + lane % 2) * kSlab + j * kVector);
    }
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const float4* const from = reinterpret_cast<const float4*>(&m.score[first_head() + k][first]);
#pragma unroll
      for (int i = 0; i < kAdded / 4; ++i) {
        const float4 four = from[i];
        to.p[k][4 * i] = four.x;
        to.p[k][4 * i + 1] = four.y;
        to.p[k][4 * i + 2] = four.z;
        to.p[k][4 * i + 3] = four.w;
      }
    }
  }

  // Adds the first `count` tokens.
  template <bool Full>
  __device__ __forceinline__ void add(const Batch& batch, int count = kAdded) {
#pragma unroll
    for (int i = 0; i < kAdded; ++i) {
      if (!Full && i >= count) break;
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
        const float2 value = decode_pair(batch.word[g][i / 2], i % 2 != 0);
#pragma unroll
        for (int k = 0; k < kHeads; ++k) {
          acc_[k][g][0] = __fmaf_rn(batch.p[k][i], value.x, acc_[k][g][0]);
          acc_[k][g][1] = __fmaf_rn(batch.p[k][i], value.y, acc_[k][g][1]);
        }
      }
    }
  }

  template <int D, class Memory>
  __device__ __forceinline__ void store(const Memory& m, const paged::Inputs& in, int partition, float* partial) const {
    const int lane = threadIdx.x % 32;
    const int d = threadIdx.x / 32 * kSlab + lane % 4 % kColumns * kVector + lane / 4 * 2;
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const int head = first_head() + k;
      const float factor = (1.0f / over_warps<false>(m.sum[head])) * in.v_scale;
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          partial[workspace_row(head, partition) * D + d + g * kColumns * kVector + e] = acc_[k][g][e] * factor;
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ int first_head() { return threadIdx.x % 4 / kColumns * kHeads; }

  float acc_[kHeads][Groups][2] = {};
};

// q on its way to shared memory. A thread holds its share in registers, so that all loads are in flight at once.
template <int G, int D>
class QueryCopy {
 public:
  __device__ __forceinline__ void load(const __half* q) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (exists(j)) own_[j] = q[threadIdx.x + j * kGroupThreads];
    }
  }

  template <class Memory>
  __device__ __forceinline__ void store(Memory& m) const {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (exists(j)) (&m.q[0][0])[threadIdx.x + j * kGroupThreads] = own_[j];
    }
  }

 private:
  static constexpr int kEach = (G * D + kGroupThreads - 1) / kGroupThreads;

  static __device__ __forceinline__ bool exists(int j) {
    return (j + 1) * kGroupThreads <= G * D || threadIdx.x + j * kGroupThreads < G * D;
  }

  __half own_[kEach];
};

// A partition with tokens, by one block, with loads scheduled by `Schedule`. partial f32 [1, G, 256, D]; maximum, sums
// f32 [1, G, 256].
template <class Schedule, int G, int D>
__device__ __forceinline__ void run_token_groups(GroupMemory<G, D, Schedule>& m, const paged::Inputs& in,
                                                 const Partition& partition, float* partial, float* maximum,
                                                 float* sums) {
  static_assert(D % kSlab == 0 && D / kSlab <= kGroupWarps, "a warp has one slab");
  QueryCopy<G, D> q;
  if (Schedule::kQueryFirst) q.load(in.q);
  locate_runs(m, in, partition);
  __syncthreads();
  TokenStream<D, typename Schedule::template Stream<D>> stream(m, in, partition.tokens);
  if (Schedule::kQueryFirst) {
    q.store(m);
  } else {
    for (int i = threadIdx.x; i < G * D; i += kGroupThreads) m.q[i / D][i % D] = in.q[i];
  }
  __syncthreads();
  {
    const GroupQuery<G, D> query(m);
    Schedule::score(m, stream, query, partition.tokens, in.scale * in.k_scale);
  }
  __syncthreads();
  weigh_scores<G, kAdded>(m, partition.tokens);
  __syncthreads();

  const int head = threadIdx.x;
  if (head < G) {
    maximum[workspace_row(head, partition.index)] = over_warps<true>(m.maximum[head]);
    sums[workspace_row(head, partition.index)] = over_warps<false>(m.sum[head]);
  }
  if (threadIdx.x / 32 >= D / kSlab) return;
  GroupValues<G, Schedule::template kGroups<G>> values;
  Schedule::add(m, stream, values, partition.tokens);
  values.template store<D>(m, in, partition.index, partial);
}

}  // namespace scalar
