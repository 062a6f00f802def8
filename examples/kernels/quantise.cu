// scale[row] = max |x[row, :]| / 448; q = e4m3(x / scale); one block a row.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include "reduce.cuh"

template <bool Absolute, bool Reciprocal>
__device__ void quantise(const float* x, unsigned char* q, float* scale, int n) {
  x += blockIdx.x * n, q += blockIdx.x * n;
  float top = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, Absolute ? fabsf(x[i]) : x[i]);
  float s = fmaxf(block_reduce<Max>(top), 1e-12f) / 448, r = 1 / s;
  if (threadIdx.x == 0) scale[blockIdx.x] = s;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    q[i] = __nv_cvt_float_to_fp8(Reciprocal ? x[i] * r : x[i] / s, __NV_SATFINITE, __NV_E4M3);
}

extern "C" __global__ void quantise_control(const float* x, unsigned char* q, float* scale, int n) {
  quantise<true, false>(x, q, scale, n);
}
extern "C" __global__ void quantise_reciprocal(const float* x, unsigned char* q, float* scale, int n) {
  quantise<true, true>(x, q, scale, n);
}
// WRONG: a row whose greatest magnitude is negative saturates.
extern "C" __global__ void quantise_signed(const float* x, unsigned char* q, float* scale, int n) {
  quantise<false, false>(x, q, scale, n);
}
