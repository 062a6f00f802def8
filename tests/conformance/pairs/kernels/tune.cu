#ifndef UNROLL
#define UNROLL 1
#endif
__global__ void scale(const float* x, float* y, int n) { for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * UNROLL; i < n; i += gridDim.x * blockDim.x * UNROLL) for (int k = 0; k < UNROLL; ++k) if (i + k < n) y[i + k] = x[i + k] * 2; }
