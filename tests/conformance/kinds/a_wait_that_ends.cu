template <bool Bug> __device__ void f(const float* x, float* y) {
  __shared__ volatile int flag; int t = threadIdx.x; if (t == 0) flag = 0; __syncthreads();
  if (t < 16) {
    while (flag == 0) {
    }
  } else if (t == 20 && !Bug) {
    __threadfence_block(); flag = 1;
  }
  y[t] = x[t];
}
__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }
__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }
