__global__ void good(const float* x, float* y, int n) { y[blockIdx.x] = x[blockIdx.x]; }
__global__ void bad(const float* x, float* y, int n) { if (blockIdx.z < n) y[blockIdx.z] = x[blockIdx.z]; }
