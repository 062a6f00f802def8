extern "C" __global__ void good(const float* x, unsigned* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = (unsigned)fmaxf(x[i], 0.0f); }
extern "C" __global__ void bad(const float* x, unsigned* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = (unsigned)x[i]; }
