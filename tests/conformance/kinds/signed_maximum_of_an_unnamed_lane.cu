template <bool Bug> __device__ void f(const int* x, int* y) {
  int t = threadIdx.x; y[t] = x[t];
  if (t < 16) { int other = __shfl_down_sync(0xffffu, x[t], 8);
    y[t] = Bug || t < 8 ? max(x[t], other) : x[t]; }
}
__global__ void good(const int* x, int* y, int n) { f<false>(x, y); }
__global__ void bad(const int* x, int* y, int n) { f<true>(x, y); }
