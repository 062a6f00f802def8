// out[0] = the sum of the squares of all gradients: one partial sum a block, then one block adds them up.
#include "llm/packed.cuh"
#include <assert.h>
#include <vector>

#define BLOCK_SIZE 256

template <float (*Reduction)(float)>
__device__ float block_reduce(float val, float out_of_bounds = 0.f) {
  __shared__ float shared_val[32];
  const int lane_id = threadIdx.x % 32;
  const int warp_id = threadIdx.x / 32;
  const int num_warps = blockDim.x / 32;
  float warp_val = Reduction(val);
  if (lane_id == 0) shared_val[warp_id] = warp_val;
  __syncthreads();
  warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
  float block_val = Reduction(warp_val);
  __syncthreads();
  return block_val;
}

template <class T>
__device__ float squared_sum(const T* data, size_t count) {
  size_t index = blockIdx.x * blockDim.x + threadIdx.x;
  size_t grid_width = blockDim.x * gridDim.x;
  float accumulator = 0.f;
  for (size_t i = index; i < count; i += grid_width) accumulator = fmaf((float)data[i], (float)data[i], accumulator);
  return accumulator;
}

template <class T>
__global__ void norm_partial_kernel(float* partial, const T* data, size_t count) {
  float block_sum = block_reduce<warp_sum>(squared_sum(data, count));
  if (threadIdx.x == 0) partial[blockIdx.x] = block_sum;
}

__global__ void norm_aggregate_kernel(float* out, const float* partial, int count) {
  float sum = block_reduce<warp_sum>(threadIdx.x < count ? partial[threadIdx.x] : 0.f);
  if (threadIdx.x == 0) out[0] = sum;
}

// The last block to finish adds the partial sums up, in their order.
__device__ unsigned int blocks_done = 0;

template <class T>
__global__ void norm_fused_kernel(float* out, float* partial, const T* data, size_t count) {
  __shared__ bool is_last;
  float block_sum = block_reduce<warp_sum>(squared_sum(data, count));
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = block_sum;
    __threadfence();
    is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  float sum = block_reduce<warp_sum>(threadIdx.x < gridDim.x ? ((volatile float*)partial)[threadIdx.x] : 0.f);
  if (threadIdx.x == 0) out[0] = sum;
}

template <typename T>
float global_norm_squared(float* out, float* partial, const T* values, size_t count, bool fused) {
  cudaDeviceProp prop;
  cudaCheck(cudaGetDeviceProperties(&prop, 0));
  const int grid_size = prop.maxThreadsPerMultiProcessor * prop.multiProcessorCount / BLOCK_SIZE;
  assert(grid_size > 0 && grid_size <= BLOCK_SIZE);
  if (fused) {
    norm_fused_kernel<<<grid_size, BLOCK_SIZE>>>(out, partial, values, count);
  } else {
    norm_partial_kernel<<<grid_size, BLOCK_SIZE>>>(partial, values, count);
    norm_aggregate_kernel<<<1, BLOCK_SIZE>>>(out, partial, grid_size);
  }
  cudaCheck(cudaGetLastError());
  float result;
  cudaCheck(cudaMemcpy(&result, out, sizeof(float), cudaMemcpyDeviceToHost));
  return result;
}

int main(int argc, char** argv) {
  std::vector<float> values(1 << 20, 0.5f);
  float *out, *partial, *d_values;
  cudaCheck(cudaMalloc(&out, sizeof(float)));
  cudaCheck(cudaMalloc(&partial, BLOCK_SIZE * sizeof(float)));
  cudaCheck(cudaMalloc(&d_values, values.size() * sizeof(float)));
  printf("%f\n", global_norm_squared(out, partial, d_values, values.size(), argc > 1));
}
