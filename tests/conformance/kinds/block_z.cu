__global__ void good(const float* x, float* y, int n) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void bad(const float* x, float* y, int n) { if (threadIdx.z < n) y[threadIdx.z] = x[threadIdx.z]; }
