template <bool Bug> __device__ void f(const float* x, float* y, volatile int* flags) {
  const int b = blockIdx.x;
  if (b > 0)
    while (flags[b - 1] != 1) {
    }
  __threadfence(); y[b] = x[b]; __threadfence();
  if (!Bug || b < 7) flags[b] = 1;
}
__global__ void zero(volatile int* flags) { flags[threadIdx.x] = 0; }
__global__ void good(const float* x, float* y, int n, volatile int* flags) { f<false>(x, y, flags); }
__global__ void bad(const float* x, float* y, int n, volatile int* flags) { f<true>(x, y, flags); }
