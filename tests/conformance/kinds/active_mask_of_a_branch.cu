template <bool Bug> __device__ void f(const int* x, int* y) {
  int t = threadIdx.x; unsigned all = __ballot_sync(~0u, x[t] > 4); y[t] = 0;
  if (x[t] > 4) { unsigned m = Bug ? __activemask() : all; y[t] = __popc(__ballot_sync(m, 1)); }
}
__global__ void good(const int* x, int* y, int n) { f<false>(x, y); }
__global__ void bad(const int* x, int* y, int n) { f<true>(x, y); }
