// Atomics on global memory from many blocks, and on shared memory within each.

__global__ void sums(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(i, t % 7 - 3);
  atomicAdd(u, 0xffffffffu);
  atomicAdd(l, 1ull << 33);
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.5);
}

__global__ void extremes(int* i, unsigned* u, unsigned long long* l) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(i, -t);
  atomicMax(i + 1, t);
  atomicMin(u, 0xf0000000u - t);
  atomicMax(u + 1, 0xf0000000u + t);
  atomicMax(l, (1ull << 40) + t);
  atomicAnd(u + 2, ~(1u << (t % 32)));
  atomicOr(u + 3, 1u << (t % 5));
  atomicXor(u + 4, t);
  atomicInc(u + 5, 9);
  atomicDec(u + 6, 9);
  atomicSub(i + 2, 2);
}

// Every slot is taken by exactly one thread; the last block to finish counts them.
__global__ void tickets(int* taken, unsigned* finished, int* total) {
  __shared__ unsigned arrived;
  const int slots = gridDim.x * blockDim.x;
  int at = (threadIdx.x * 37 + blockIdx.x) % slots;
  while (atomicCAS(taken + at, 0, 1 + static_cast<int>(blockIdx.x)) != 0) at = (at + 1) % slots;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) arrived = atomicAdd(finished, 1u);
  __syncthreads();
  if (arrived == gridDim.x - 1)
    for (int i = threadIdx.x; i < slots; i += blockDim.x) atomicAdd(total, taken[i] != 0);
}

__global__ void exchange(float* f, int* i) {
  f[1 + threadIdx.x] = atomicExch(f, 1.0f + threadIdx.x);
  i[1 + threadIdx.x] = atomicExch(i, 1 + static_cast<int>(threadIdx.x));
}

__global__ void hammer(int* i, float* f, int times) {
  for (int k = 0; k < times; ++k) {
    atomicAdd(i, 1);
    atomicAdd(f, 1.0f);
  }
}
