template <bool Bug> __device__ void f(const unsigned* x, unsigned* y) {
  int t = threadIdx.x; y[t] = x[t];
  if (t < 16) { unsigned other = __shfl_down_sync(0xffffu, x[t], 8);
    y[t] = Bug || t < 8 ? min(x[t], other) : x[t]; }
}
__global__ void good(const unsigned* x, unsigned* y, int n) { f<false>(x, y); }
__global__ void bad(const unsigned* x, unsigned* y, int n) { f<true>(x, y); }
