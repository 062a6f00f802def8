// Accesses on which CUDA and C++ differ: no race where several threads write one value, or volatile flags order others.

__global__ void equal_values(const float* in, float* out) {
  __shared__ float s[4];
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x / 32] = in[0] + i;
    __syncthreads();
    out[threadIdx.x] = s[0] + s[1];
    __syncthreads();
  }
}

// The warps write equal values, and one thread another.
__global__ void equal_and_another(const float* in, float* out) {
  __shared__ float s[4];
  s[threadIdx.x / 32] = in[0];  // equal
  if (threadIdx.x == 40) s[1] = in[0] + 1;  // another
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x / 32];
}

__global__ void equal_and_read_early(const float* in, float* out) {
  __shared__ float s[4];
  s[threadIdx.x / 32] = in[0];  // written
  out[threadIdx.x] = s[1 - threadIdx.x / 32];  // read early
}

// What a thread reads too early, and does not use.
__global__ void dropped_read(const float* in, float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = in[threadIdx.x];
  float other = s[63 - threadIdx.x];
  __syncthreads();
  other = s[63 - threadIdx.x];
  out[threadIdx.x] = other;
}

// A memory cell that has the value already is written all the same: with another thread's value it is a race.
__global__ void equal_to_what_was_there(const float* in, float* out) {
  if (threadIdx.x == 0) out[0] = 0.0f;  // the old value
  if (threadIdx.x == 33) out[0] = 1.0f;  // a new value
}

template <bool Fenced>
__global__ void look_back(const float* in, float* out, volatile int* flags) {
  if (threadIdx.x == 0) {
    float sum = in[blockIdx.x];
    if (blockIdx.x > 0) {
      while (flags[blockIdx.x - 1] == 0) continue;
      __threadfence();
      sum += out[blockIdx.x - 1];  // handed over
    }
    out[blockIdx.x] = sum;  // published
    if (Fenced) __threadfence();
    flags[blockIdx.x] = 1;
  }
}

// Value and flag are one word, which needs no fence.
__global__ void one_word(const float* in, volatile unsigned long long* out) {
  unsigned long long word = 1;
  if (blockIdx.x > 0)
    while ((word = out[blockIdx.x - 1]) == 0) continue;
  if (threadIdx.x == 0) out[blockIdx.x] = word + 1;
}

template <bool Synchronised>
__global__ void volatile_reduction(const float* in, float* out) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  for (int o = 16; o > 0; o /= 2) {
    const float other = s[threadIdx.x + o];  // a lane ahead
    if (Synchronised) __syncwarp();
    s[threadIdx.x] = s[threadIdx.x] + other;  // a lane behind
    if (Synchronised) __syncwarp();
  }
  out[threadIdx.x] = s[0];
}
