#include <cuda_fp4.h>
extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = float(__nv_fp4_e2m1(v)); }
}