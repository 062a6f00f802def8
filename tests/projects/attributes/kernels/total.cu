// y[i] = x[i] + the sum of all x, added up by blocks and then over the blocks, always in the same order.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 128;

__device__ float block_sum(const float* x) {
  float sum = 0;
  for (int i = 0; i < kThreads; ++i) sum += x[i];
  return sum;
}

__device__ float total(const float* partial, int blocks) {
  float sum = 0;
  for (int b = 0; b < blocks; ++b) sum += partial[b];
  return sum;
}

__global__ void sums(const float* x, float* partial) {
  if (threadIdx.x == 0) partial[blockIdx.x] = block_sum(x + blockIdx.x * kThreads);
}

__global__ void add(const float* x, const float* partial, float* y) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  y[i] = x[i] + total(partial, gridDim.x);
}

__global__ void together(const float* x, float* partial, float* y) {
  if (threadIdx.x == 0) partial[blockIdx.x] = block_sum(x + blockIdx.x * kThreads);
  cg::this_grid().sync();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  y[i] = x[i] + total(partial, gridDim.x);
}

// Each block keeps its sum in shared memory, where the others of its cluster read it. The grid is one cluster.
__global__ void clustered(const float* x, float* partial, float* y) {
  __shared__ float own;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) partial[blockIdx.x] = own = block_sum(x + blockIdx.x * kThreads);
  cluster.sync();
  float sum = 0;
  for (unsigned b = 0; b < cluster.num_blocks(); ++b) sum += *cluster.map_shared_rank(&own, b);
  cluster.sync();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  y[i] = x[i] + sum;
}

// The sums first go to the far end of more shared memory than a block has without a request.
__global__ void large(const float* x, float* partial, int words) {
  extern __shared__ float memory[];
  if (threadIdx.x == 0) memory[words - 1] = block_sum(x + blockIdx.x * kThreads);
  __syncthreads();
  if (threadIdx.x == 0) partial[blockIdx.x] = memory[words - 1];
}
