// block max; bug: warps that do not exist are read, their shared slots never written
template <bool Bug> __device__ void f(const float* x, float* y, int n) {
  __shared__ float part[32]; int t = threadIdx.x, lane = t & 31, w = t >> 5; float m = -INFINITY;
  for (int i = t; i < n; i += blockDim.x) m = fmaxf(m, x[blockIdx.x * n + i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (lane == 0) part[w] = m;
  __syncthreads();
  m = (Bug || lane < blockDim.x / 32) ? part[lane] : -INFINITY;
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (t == 0) y[blockIdx.x] = m;
}
extern "C" __global__ void good(const float* x, float* y, int n) { f<false>(x, y, n); }
extern "C" __global__ void bad(const float* x, float* y, int n) { f<true>(x, y, n); }
