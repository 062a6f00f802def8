template <bool Bug> __device__ void f(const float* x, float* y) { int t = threadIdx.x; y[t] = 2 * x[t]; __syncthreads();
  float4 v = Bug ? __ldg((const float4*)y + t / 4) : ((const float4*)y)[t / 4]; __syncthreads();
  y[t] = (&v.x)[t % 4] / 2; }
__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }
__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }
