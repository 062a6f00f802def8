#include <cuda_fp16.h>
extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = ({float2 f = __half22float2(__float22half2_rn(make_float2(v, 1.f))); f.x;}); }
}