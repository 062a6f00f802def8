extern "C" __global__ void zero(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 0; }
extern "C" __global__ void zero2(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 0; }
extern "C" __global__ void good(const float* x, float* y, int n, int k) { int t = threadIdx.x; if (t < n) { float a = 0; for (int s = 0; s < k; ++s) a += x[s * n + t]; y[t] = a; } }
extern "C" __global__ void bad(const float* x, float* y, int n, int k) { int t = threadIdx.x; if (t < n) atomicAdd(&y[t], x[blockIdx.x * n + t]); }
