template <bool Bug> __device__ void f(const int* x, int* y, int n) {
  __shared__ int sums[32]; int t = threadIdx.x; sums[t & 31] = 0; __syncthreads();
  atomicAdd(&sums[t / 32], x[blockIdx.x * 128 + t]); __syncthreads();
  if (t == 0) { int a = 0; for (int k = 0; k < 4; ++k) a += sums[k]; sums[31] = a; }
  if (!Bug) __syncthreads();
  y[blockIdx.x * 128 + t] = sums[31] + t;
}
extern "C" __global__ void good(const int* x, int* y, int n) { f<false>(x, y, n); }
extern "C" __global__ void bad(const int* x, int* y, int n) { f<true>(x, y, n); }
