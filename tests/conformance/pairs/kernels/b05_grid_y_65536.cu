extern "C" __global__ void good(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }
extern "C" __global__ void bad(const float* x, float* y, int n) { int i = blockIdx.y * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }
