#include <cuda_pipeline.h>
extern "C" __global__ void K(const float* x, float* y, int n) { __shared__ __align__(16) float s[256]; int i = threadIdx.x; if (i % 4 == 0) { __pipeline_memcpy_async(&s[i], &x[i], 16); } __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); y[i] = s[i]; }
