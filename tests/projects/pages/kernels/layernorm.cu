// y[row, :] = (x[row, :] - mean) / sqrt(variance + 1e-5) * w + b; one block of 128 threads a row.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// The sum over the block, for every thread; `partial` holds one value a warp.
__device__ float block_sum(float value, float* partial) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  value = cg::reduce(warp, value, cg::plus<float>());
  if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = value;
  block.sync();
  value = warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0.0f;
  return cg::reduce(warp, value, cg::plus<float>());
}

template <bool Barrier>
__device__ void layernorm(const float* __restrict__ x, const float* w, const float* b, float* __restrict__ y, int n) {
  extern __shared__ float partial[];
  x += blockIdx.x * n, y += blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  const float mean = block_sum(sum, partial) / n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  if (Barrier) __syncthreads();  // else a warp writes its second sum where others still read the first ones
  const float scale = rsqrtf(block_sum(squares, partial) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

extern "C" __global__ void layernorm_control(const float* x, const float* w, const float* b, float* y, int n) {
  layernorm<true>(x, w, b, y, n);
}
extern "C" __global__ void layernorm_hasty(const float* x, const float* w, const float* b, float* y, int n) {
  layernorm<false>(x, w, b, y, n);
}
