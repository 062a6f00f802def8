// One block of one partition, for all G heads: the steps of kernels/CONTRACT.md in their order. A thread loads K and V
// a byte at a time; each byte is decoded once and serves the G heads from a register.
//
// A variant is two policies. It may change which thread loads what and when, never an operation or an order:
//   decode   byte -> f32          (decode.cuh)
//   pages    token i -> its address (pages.cuh)
#pragma once
#include "decode.cuh"
#include "pages.cuh"
#include "../trees.cuh"

namespace scalar {

template <int G>
struct PartitionMemory {
  float score[G][kPartitionTokens];  // then the weights p, in place
  WarpValues maximum[G];
  WarpValues sum[G];
};

// score[head][i] = (q . k) * score_scale. Token i belongs to warp i mod 8, dimension d to lane d mod 32.
template <int G, int D, class Decode, class Pages>
__device__ __forceinline__ void score_tokens(PartitionMemory<G>& m, const paged::Inputs& in, int tokens,
                                             const Decode& decode, const Pages& pages) {
  constexpr int strides = D / 32;
  const int lane = threadIdx.x % 32;
  const float score_scale = in.scale * in.k_scale;
  float q[G][strides];
#pragma unroll
  for (int head = 0; head < G; ++head) {
#pragma unroll
    for (int j = 0; j < strides; ++j) q[head][j] = __half2float(in.q[head * D + lane + 32 * j]);
  }

  for (int i = threadIdx.x / 32; i < tokens; i += kWarps) {
    const TokenAddress address = pages(i);
    const unsigned char* const k = paged::token_bytes(in.k, address.physical_page, address.position);
    float acc[G] = {};
#pragma unroll
    for (int j = 0; j < strides; ++j) {
      const float key = decode(k[lane + 32 * j]);
#pragma unroll
      for (int head = 0; head < G; ++head) acc[head] = __fmaf_rn(q[head][j], key, acc[head]);
    }
    // The sum trees of all heads at once, without the broadcast: lane 0 has the results.
#pragma unroll
    for (int o = 16; o > 0; o /= 2) {
#pragma unroll
      for (int head = 0; head < G; ++head) acc[head] += __shfl_down_sync(paged::kAllLanes, acc[head], o);
    }
    if (lane == 0) {
#pragma unroll
      for (int head = 0; head < G; ++head) m.score[head][i] = acc[head] * score_scale;
    }
  }
}

template <int G>
__device__ __forceinline__ void find_maximum(PartitionMemory<G>& m, int tokens) {
#pragma unroll
  for (int head = 0; head < G; ++head) {
    float greatest = kNoMaximum;
    for (int i = threadIdx.x; i < tokens; i += kThreads) greatest = paged::max_of(greatest, m.score[head][i]);
    publish(m.maximum[head], paged::max_tree(greatest));
  }
}

// score -> p in place: a thread writes only what it alone reads until the next barrier.
template <int G>
__device__ __forceinline__ void weigh_tokens(PartitionMemory<G>& m, int tokens) {
#pragma unroll
  for (int head = 0; head < G; ++head) {
    const float greatest = max_of_warps(m.maximum[head]);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < tokens; i += kThreads) {
      const float p = paged::weight_of(m.score[head][i], greatest);
      m.score[head][i] = p;
      sum += p;
    }
    publish(m.sum[head], paged::sum_tree(sum));
  }
}

// Thread = dimension: partial[head][d], normalised and v-scaled, over ascending tokens.
template <int G, int D, class Decode, class Pages>
__device__ __forceinline__ void add_values(const PartitionMemory<G>& m, const paged::Inputs& in,
                                           const Partition& partition, const Decode& decode,
                                           const Pages& pages, float* partial) {
  const int d = threadIdx.x;
  if (d >= D) return;
  float acc[G] = {};
#pragma unroll 4
  for (int i = 0; i < partition.tokens; ++i) {  // the loads of several tokens are in flight at once
    const TokenAddress address = pages(i);
    const float value = decode(paged::token_bytes(in.v, address.physical_page, address.position)[d]);
#pragma unroll
    for (int head = 0; head < G; ++head) acc[head] = __fmaf_rn(m.score[head][i], value, acc[head]);
  }
#pragma unroll
  for (int head = 0; head < G; ++head) {
    const float factor = (1.0f / sum_of_warps(m.sum[head])) * in.v_scale;
    partial[workspace_row(head, partition.index) * D + d] = acc[head] * factor;
  }
}

// A partition with tokens. partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int G, int D, class Decode, class Pages>
__device__ __forceinline__ void run_partition(PartitionMemory<G>& m, const paged::Inputs& in,
                                              const Partition& partition, const Decode& decode,
                                              const Pages& pages, float* partial, float* maximum,
                                              float* sums) {
  static_assert(D % 32 == 0 && D <= kThreads, "a lane has D / 32 dimensions in QK, a thread one in PV");
  score_tokens<G, D>(m, in, partition.tokens, decode, pages);
  __syncthreads();
  find_maximum(m, partition.tokens);
  __syncthreads();
  weigh_tokens(m, partition.tokens);
  __syncthreads();
  add_values<G, D>(m, in, partition, decode, pages, partial);
  const int head = threadIdx.x;
  if (head < G) {
    maximum[workspace_row(head, partition.index)] = max_of_warps(m.maximum[head]);
    sums[workspace_row(head, partition.index)] = sum_of_warps(m.sum[head]);
  }
}

}  // namespace scalar
