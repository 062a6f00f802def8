// Reductions over a block of whole warps; every thread gets the result.
#pragma once

struct Sum {
  static __device__ float join(float a, float b) { return a + b; }
};
struct Max {
  static __device__ float join(float a, float b) { return fmaxf(a, b); }
};

template <class Op>
__device__ float block_reduce(float value) {
  __shared__ float of_warp[32];
  for (int o = 16; o > 0; o /= 2) value = Op::join(value, __shfl_xor_sync(~0u, value, o));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) value = Op::join(value, of_warp[w]);
  __syncthreads();  // the next reduction reuses of_warp
  return value;
}
