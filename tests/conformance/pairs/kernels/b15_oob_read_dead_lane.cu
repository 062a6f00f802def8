template <bool Bug> __device__ void f(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; float v = 0; if (Bug || i < n) v = x[i]; if (i < n) y[i] = v * 2; }
extern "C" __global__ void good(const float* x, float* y, int n) { f<false>(x, y, n); }
extern "C" __global__ void bad(const float* x, float* y, int n) { f<true>(x, y, n); }
