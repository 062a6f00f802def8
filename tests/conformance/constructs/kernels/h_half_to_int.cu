#include <cuda_fp16.h>
extern "C" __global__ void K(const __half* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { __half v = x[i]; y[i] = (float)(int)v; }
}