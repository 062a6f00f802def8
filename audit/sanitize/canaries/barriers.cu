// Canaries of synccheck: threads of a block wait at different barriers.
// Buffers: in and out, 64 floats each. One block of 64 threads.

__global__ void divergent_barrier(const float* in, float* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = in[threadIdx.x];
    __syncthreads();  // found: divergent_barrier
  } else {
    out[threadIdx.x] = -in[threadIdx.x];
    __syncthreads();  // found: divergent_barrier
  }
}

__global__ void divergent_barrier_clean(const float* in, float* out) {
  out[threadIdx.x] = threadIdx.x < 32 ? in[threadIdx.x] : -in[threadIdx.x];
  __syncthreads();
}

__global__ void divergent_warp(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) __syncwarp();  // found: divergent_warp
}

__global__ void divergent_warp_clean(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) __syncwarp(0x0000FFFFu);
}
