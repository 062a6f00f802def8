// Canaries of racecheck: two threads access the same memory without an order; both lines are marked.
// Buffers: in and out, 128 floats each. Blocks of 64 threads, so two warps.

__global__ void race_between_warps(const float* in, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = in[threadIdx.x];        // found: race_between_warps
  out[threadIdx.x] = values[63 - threadIdx.x];  // found: race_between_warps
}

__global__ void race_between_warps_clean(const float* in, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x];
}

// A shuffle synchronises lanes, but orders no memory.
__global__ void race_inside_warp(const float* in, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = in[threadIdx.x];                    // found: race_inside_warp
  const float sum = __shfl_xor_sync(0xFFFFFFFFu, in[0], 1);
  out[threadIdx.x] = values[threadIdx.x ^ 1] + sum;         // found: race_inside_warp
}

__global__ void race_inside_warp_clean(const float* in, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = in[threadIdx.x];
  const float sum = __shfl_xor_sync(0xFFFFFFFFu, in[0], 1);
  __syncwarp();
  out[threadIdx.x] = values[threadIdx.x ^ 1] + sum;
}

// There is a barrier between the write and the read, but none between the read and the next write.
__global__ void race_over_iterations(const float* in, float* out) {
  __shared__ float values[64];
  float sum = 0.0f;
  for (int i = 0; i < 2; ++i) {
    values[threadIdx.x] = in[threadIdx.x] * i;  // found: race_over_iterations
    __syncthreads();
    sum += values[63 - threadIdx.x];            // found: race_over_iterations
  }
  out[threadIdx.x] = sum;
}

__global__ void race_over_iterations_clean(const float* in, float* out) {
  __shared__ float values[64];
  float sum = 0.0f;
  for (int i = 0; i < 2; ++i) {
    values[threadIdx.x] = in[threadIdx.x] * i;
    __syncthreads();
    sum += values[63 - threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// Two blocks: both write element 64.
__global__ void race_between_blocks(const float* in, float* out) {
  const int at = threadIdx.x + 63 * blockIdx.x;
  if (at < 128) out[at + (blockIdx.x == 0)] = in[at] + blockIdx.x;  // found: race_between_blocks
}

__global__ void race_between_blocks_clean(const float* in, float* out) {
  const int at = threadIdx.x + 64 * blockIdx.x;
  out[at] = in[at];
}

// The second block writes nothing; it reads what the first one writes.
__global__ void race_with_a_reader(const float* in, float* out) {
  if (blockIdx.x == 1 && out[threadIdx.x] < 3.0f) return;  // found: race_with_a_reader
  out[threadIdx.x] = in[threadIdx.x];                      // found: race_with_a_reader
}

__global__ void race_with_a_reader_clean(const float* in, float* out) {
  if (blockIdx.x == 1 && in[threadIdx.x] < 3.0f) return;
  out[threadIdx.x] = in[threadIdx.x];
}

// The last block to arrive reads what the other wrote, which needs a fence in between.
__global__ void race_without_fence(float* out, unsigned* tickets) {
  __shared__ bool last;
  out[threadIdx.x + 64 * blockIdx.x] = 1.0f;             // found: race_without_fence
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1u) == 1;
  __syncthreads();
  if (!last) return;
  out[threadIdx.x + 64 * blockIdx.x] += out[threadIdx.x + 64 * (1 - blockIdx.x)];  // found: race_without_fence
}

__global__ void race_without_fence_clean(float* out, unsigned* tickets) {
  __shared__ bool last;
  out[threadIdx.x + 64 * blockIdx.x] = 1.0f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(tickets, 1u) == 1;
  }
  __syncthreads();
  if (last) out[threadIdx.x + 64 * blockIdx.x] += out[threadIdx.x + 64 * (1 - blockIdx.x)];
}
