template <bool Bug> __device__ void f(const float* x, float* y) {
  int t = threadIdx.x; y[t] = x[t];
  if (t < 16) { float other = __shfl_down_sync(0xffffu, x[t], 8);
    y[t] = Bug || t < 8 ? fmaxf(x[t], other) : x[t]; }
}
__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }
__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }
