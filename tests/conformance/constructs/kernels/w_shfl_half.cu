#include <cuda_fp16.h>
extern "C" __global__ void K(const __half* x, __half* y, int n) { int i = threadIdx.x, lane = i & 31; y[i] = __shfl_xor_sync(~0u, x[i], 1); }
