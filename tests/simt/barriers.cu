// Barriers of a block: right ones, and each way to get one wrong. Line numbers matter to the tests.

__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[256];
  tile[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void early_exit(int* out) {
  if (threadIdx.x % 3 == 0) return;
  __shared__ int seen;
  if (threadIdx.x == 1) seen = 0;
  __syncthreads();
  atomicAdd(&seen, 1);
  __syncthreads();
  out[threadIdx.x] = seen;
}

__global__ void votes(int* out) {
  const int t = threadIdx.x;
  out[t] = __syncthreads_count(t % 5 == 0);
  out[t] += 1000 * __syncthreads_and(t < 200) + 2000 * __syncthreads_and(t < 50);
  out[t] += 10000 * __syncthreads_or(t == 77) + 20000 * __syncthreads_or(t > 500);
}

__global__ void divergent(int* out) {
  if (threadIdx.x < 40) {
    out[threadIdx.x] = 1;
    __syncthreads();  // the first place
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();  // the second place
  }
}

__global__ void against_warp(int* out) {
  if (threadIdx.x == 5) {
    __syncthreads();  // the third place
  } else {
    __syncwarp();
  }
  out[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void mixed_kinds(int* out) {
  if (threadIdx.x == 0) out[0] = __syncthreads_count(1); else __syncthreads();
}

__global__ void order(int* out, int* next) {
  const int place = atomicAdd(next, 1);
  out[place] = threadIdx.x;
  __syncthreads();
  out[blockDim.x + place] = *next;
}

__global__ void asserts(int limit) {
  assert(static_cast<int>(threadIdx.x) < limit);
}

__global__ void prints() {
  if (threadIdx.x == 3) printf("block %u thread %u: %.3f %s\n", blockIdx.x, threadIdx.x, 1.5, "text");
}

__global__ void spins(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *count += 1;
  atomicExch(lock, 0);
}

__global__ void recursion(int* out);
__device__ int descend(int* out, int depth) {
  volatile int room[64];
  room[depth % 64] = depth;
  return depth < 1000000000 ? descend(out, depth + 1) + room[depth % 64] : out[0];
}
__global__ void recursion(int* out) { out[1] = descend(out, out[0]); }

__global__ void stray(int* out) { out[-(1LL << 38)] = 1; }
__global__ void misaligned(float* out) { *reinterpret_cast<float4*>(out + 1) = make_float4(1, 2, 3, 4); }
__global__ void divides(int* out) { out[1] = 7 / out[0]; }

// One thread changes the rounding mode and then waits; the others must not see it.
__global__ void rounding_mode(const float* x, float* out) {
#ifndef __CUDACC__
  if (threadIdx.x == 0) {
    const unsigned toward_zero = 0x7f80;
    __builtin_ia32_ldmxcsr(toward_zero);
  }
#endif
  __syncthreads();
  out[threadIdx.x] = x[0] + x[1];
}

// The first and the second warp spin until the last one raises the flag, twice.
__global__ void waits(int* flag, int* out) {
  if (threadIdx.x == 95) {
    atomicAdd(flag, 1);
    atomicAdd(flag, 1);
  }
  while (atomicAdd(flag, 0) < 2) {
  }
  out[threadIdx.x] = *flag;
}
