// Canaries of initcheck: kernels use memory that nobody wrote.
// Buffers: in and out, 64 floats each; out is unwritten at first. One block of 64 threads.

__global__ void uninitialised_global(const float* in, float* out) {
  out[threadIdx.x] += in[threadIdx.x];  // found: uninitialised_global
}

__global__ void uninitialised_global_clean(const float* in, float* out) {
  out[threadIdx.x] = 0.0f;
  out[threadIdx.x] += in[threadIdx.x];
}

__global__ void uninitialised_shared(const float* in, float* out) {
  __shared__ float values[64];
  if (threadIdx.x < 63) values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x];  // found: uninitialised_shared
}

__global__ void uninitialised_shared_clean(const float* in, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x];
}

// The value is not loaded: it comes from a register that nobody set.
__global__ void uninitialised_local(const float* in, float* out) {
  float table[4];
  for (int i = 0; i < 3; ++i) table[i] = in[i];
  out[threadIdx.x] = table[threadIdx.x % 4];
  __syncthreads();
  if (out[threadIdx.x] > 0.0f) out[threadIdx.x] = 0.0f;  // found: uninitialised_local
}

__global__ void uninitialised_local_clean(const float* in, float* out) {
  float table[4];
  for (int i = 0; i < 4; ++i) table[i] = in[i];
  out[threadIdx.x] = table[threadIdx.x % 4];
  __syncthreads();
  if (out[threadIdx.x] > 0.0f) out[threadIdx.x] = 0.0f;
}
