template <bool Bug> __device__ void copy(const float* x, float* y, int n) {
  const float* s = x + blockIdx.x * n; float* d = y + blockIdx.x * n; int done = 0;
  if (Bug || n % 2 == 0) { for (int i = threadIdx.x; i < n / 2; i += blockDim.x) ((float2*)d)[i] = ((const float2*)s)[i]; done = n / 2 * 2; }
  for (int i = done + threadIdx.x; i < n; i += blockDim.x) d[i] = s[i];
}
extern "C" __global__ void good(const float* x, float* y, int n) { copy<false>(x, y, n); }
extern "C" __global__ void bad(const float* x, float* y, int n) { copy<true>(x, y, n); }
