// Softmax of the streamed variants: thread t does the work of threads t and t + 128 of the contract's block of 256, for
// all heads at once.
#pragma once
#include "../../paged/arithmetic.cuh"
#include "token_stream.cuh"

namespace scalar {

// Token j of the contract's thread t + 128 v, for which this thread t stands.
__device__ __forceinline__ int softmax_token(int v, int j) { return threadIdx.x + kGroupThreads * (v + 2 * j); }

template <bool Maximum>
__device__ __forceinline__ float join(float a, float b) {
  return Maximum ? paged::max_of(a, b) : a + b;
}

// The warps' trees; the roots go to root[head][contract's warp].
template <bool Maximum, int G>
__device__ __forceinline__ void climb(float (&x)[G][2], float (&root)[G][kWarps]) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) {
#pragma unroll
    for (int head = 0; head < G; ++head) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        x[head][v] = join<Maximum>(x[head][v], __shfl_down_sync(paged::kAllLanes, x[head][v], o));
      }
    }
  }
  if (threadIdx.x % 32 != 0) return;
#pragma unroll
  for (int head = 0; head < G; ++head) {
#pragma unroll
    for (int v = 0; v < 2; ++v) root[head][threadIdx.x / 32 + kGroupWarps * v] = x[head][v];
  }
}

template <bool Maximum>
__device__ __forceinline__ float over_warps(const float (&root)[kWarps]) {
  float x[kWarps];
#pragma unroll
  for (int i = 0; i < kWarps; ++i) x[i] = root[i];
#pragma unroll
  for (int o = kWarps / 2; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < o; ++i) x[i] = join<Maximum>(x[i], x[i + o]);
  }
  return x[0];
}

// Full: there are 1,024 tokens.
template <bool Full, int G, class Memory>
__device__ __forceinline__ void weigh_each(Memory& m, int tokens) {
  constexpr int rounds = kPartitionTokens / (2 * kGroupThreads);
  float greatest[G][2];
#pragma unroll
  for (int head = 0; head < G; ++head) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      greatest[head][v] = kNoMaximum;
#pragma unroll
      for (int j = 0; j < rounds; ++j) {
        const int i = softmax_token(v, j);
        if (Full || i < tokens) greatest[head][v] = paged::max_of(greatest[head][v], m.score[head][i]);
      }
    }
  }
  climb<true>(greatest, m.maximum);
  __syncthreads();
  float sum[G][2];
#pragma unroll
  for (int head = 0; head < G; ++head) {
    const float maximum = over_warps<true>(m.maximum[head]);
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      sum[head][v] = 0.0f;
#pragma unroll
      for (int j = 0; j < rounds; ++j) {
        const int i = softmax_token(v, j);
        if (!Full && i >= tokens) continue;
        const float p = paged::weight_of(m.score[head][i], maximum);
        m.score[head][i] = p;
        sum[head][v] += p;
      }
    }
  }
  climb<false>(sum, m.sum);
}

// Turns scores into weights in place, and computes m.maximum and m.sum. The `Behind` tokens past the last one get the
// weight +0, within the partition, so that loads of that many tokens at once may include them. A barrier must separate
// this from the stores of the scores before it, and from the first use after it.
template <int G, int Behind, class Memory>
__device__ __forceinline__ void weigh_scores(Memory& m, int tokens) {
  static_assert(G * Behind <= kGroupThreads, "a thread has one weight");
  if (tokens == kPartitionTokens) {
    weigh_each<true, G>(m, tokens);
  } else {
    weigh_each<false, G>(m, tokens);
    const int i = tokens + threadIdx.x % Behind;
    if (threadIdx.x < G * Behind && i < kPartitionTokens) m.score[threadIdx.x / Behind][i] = 0.0f;
  }
}

}  // namespace scalar
