__global__ void good(const float* x, float* y, int n) { extern __shared__ float s[]; s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x]; }
__global__ void bad(const float* x, float* y, int n) { extern __shared__ float s[]; __shared__ float more[512];
  more[threadIdx.x] = s[threadIdx.x] = x[threadIdx.x]; y[threadIdx.x] = more[threadIdx.x]; }
