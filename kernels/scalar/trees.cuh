// The contract's trees over the 8 warp values of a block. Every thread computes the whole tree, so the only barrier is
// the one that publishes the values.
#pragma once
#include "../paged/trees.cuh"
#include "geometry.cuh"

namespace scalar {

// One value a warp, each the root of that warp's own tree.
struct WarpValues {
  float root[kWarps];
};

// Lane 0 stores its warp's root.
__device__ __forceinline__ void publish(WarpValues& values, float root) {
  if (threadIdx.x % 32 == 0) values.root[threadIdx.x / 32] = root;
}

__device__ __forceinline__ float sum_of_warps(const WarpValues& values) {
  float x[kWarps];
#pragma unroll
  for (int i = 0; i < kWarps; ++i) x[i] = values.root[i];
#pragma unroll
  for (int o = kWarps / 2; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < o; ++i) x[i] += x[i + o];
  }
  return x[0];
}

__device__ __forceinline__ float max_of_warps(const WarpValues& values) {
  float x[kWarps];
#pragma unroll
  for (int i = 0; i < kWarps; ++i) x[i] = values.root[i];
#pragma unroll
  for (int o = kWarps / 2; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < o; ++i) x[i] = paged::max_of(x[i], x[i + o]);
  }
  return x[0];
}

}  // namespace scalar
