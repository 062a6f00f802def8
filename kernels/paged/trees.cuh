// The trees of kernels/CONTRACT.md over the 32 lanes of a warp.
#pragma once
#include "arithmetic.cuh"

namespace paged {

// x[i] += x[i + o] for i < o, o = 16, 8, 4, 2, 1; every lane returns x[0]. Whole warps only.
__device__ __forceinline__ float sum_tree(float x) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) x += __shfl_down_sync(kAllLanes, x, o);
  return __shfl_sync(kAllLanes, x, 0);
}

// The same tree of max_of.
__device__ __forceinline__ float max_tree(float x) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) x = max_of(x, __shfl_down_sync(kAllLanes, x, o));
  return __shfl_sync(kAllLanes, x, 0);
}

}  // namespace paged
