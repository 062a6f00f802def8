// Canaries of memcheck: the faulty lines are marked; each clean twin does the same within bounds.
// Buffers: in and out, 64 floats each. One block of 64 threads.

__global__ void out_of_bounds_write(const float* in, float* out) {
  out[threadIdx.x + 1] = in[threadIdx.x];  // found: out_of_bounds_write
}

__global__ void out_of_bounds_write_clean(const float* in, float* out) {
  if (threadIdx.x + 1 < 64) out[threadIdx.x + 1] = in[threadIdx.x];
}

__global__ void out_of_bounds_read(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x + 1];  // found: out_of_bounds_read
}

__global__ void out_of_bounds_read_clean(const float* in, float* out) {
  out[threadIdx.x] = threadIdx.x + 1 < 64 ? in[threadIdx.x + 1] : 0.0f;
}

// The write hits the second of two arrays, which are adjacent on a GPU.
__global__ void shared_out_of_bounds(const float* in, float* out) {
  __shared__ float first[64];
  __shared__ float second[64];
  second[threadIdx.x] = 0.0f;
  first[threadIdx.x + 1] = in[threadIdx.x];  // found: shared_out_of_bounds
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}

__global__ void shared_out_of_bounds_clean(const float* in, float* out) {
  __shared__ float first[64 + 1];
  __shared__ float second[64];
  second[threadIdx.x] = 0.0f;
  if (threadIdx.x == 0) first[0] = 0.0f;
  first[threadIdx.x + 1] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}

// Dynamic shared memory of 256 bytes.
__global__ void dynamic_out_of_bounds(const float* in, float* out) {
  extern __shared__ float values[];
  values[threadIdx.x + 1] = in[threadIdx.x];  // found: dynamic_out_of_bounds
  __syncthreads();
  out[threadIdx.x] = threadIdx.x == 0 ? 0.0f : values[threadIdx.x];
}

__global__ void dynamic_out_of_bounds_clean(const float* in, float* out) {
  extern __shared__ float values[];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void misaligned_vector(const float* in, float* out) {
  if (threadIdx.x >= 15) return;
  const float4 v = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x + 1);  // found: misaligned_vector
  out[threadIdx.x] = (v.x + v.y) + (v.z + v.w);
}

__global__ void misaligned_vector_clean(const float* in, float* out) {
  if (threadIdx.x >= 15) return;
  const float4 v = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x);
  out[threadIdx.x] = (v.x + v.y) + (v.z + v.w);
}
