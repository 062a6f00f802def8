#include <cuda_fp16.h>
extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = static_cast<float>(static_cast<__half>(v)); }
}