template <bool Bug> __device__ void f(const int* x, int* y) {
  __shared__ int s[32]; int lane = threadIdx.x; s[lane] = x[blockIdx.x * 32 + lane];
  int any = __any_sync(~0u, s[lane] > 0);
  if (!Bug) __syncwarp();
  y[blockIdx.x * 32 + lane] = s[31 - lane] + any;
}
extern "C" __global__ void good(const int* x, int* y) { f<false>(x, y); }
extern "C" __global__ void bad(const int* x, int* y) { f<true>(x, y); }
