template <int N> __device__ void f(const float* x, float* y) { __shared__ float s[N]; s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x]; }
__global__ void good(const float* x, float* y, int n) { f<12 * 1024>(x, y); }
__global__ void bad(const float* x, float* y, int n) { f<12 * 1024 + 1>(x, y); }
