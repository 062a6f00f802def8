// c[m, n] = sum over k of a[m, k] b[k, n]; elements of type ELEMENT, one thread an element of c in f32.
#if ELEMENT == 1
#include <cuda_fp16.h>
using Element = __half;
__device__ float value(Element e) { return __half2float(e); }
#elif ELEMENT == 2
#include <cuda_bf16.h>
using Element = __nv_bfloat16;
__device__ float value(Element e) { return __bfloat162float(e); }
#else
#include <cuda_fp16.h>
#include <cuda_fp8.h>
using Element = __nv_fp8_storage_t;
__device__ float value(Element e) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(e, __NV_E4M3))); }
#endif

__device__ float product(const Element* a, const Element* b, int row, int column, int k, int n, int from, int to) {
  float sum = 0;
  for (int i = from; i < to; ++i) sum += value(a[row * k + i]) * value(b[i * n + column]);
  return sum;
}

extern "C" __global__ void gemm_control(const Element* a, const Element* b, float* c, int k, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < n) c[blockIdx.y * n + column] = product(a, b, blockIdx.y, column, k, n, 0, k);
}

// The halves of k apart, then together.
extern "C" __global__ void gemm_split(const Element* a, const Element* b, float* c, int k, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, half = k / 2;
  if (column < n)
    c[blockIdx.y * n + column] =
        product(a, b, blockIdx.y, column, k, n, 0, half) + product(a, b, blockIdx.y, column, k, n, half, k);
}

// WRONG: each product is added up in the ten bits of a half.
extern "C" __global__ void gemm_narrow(const Element* a, const Element* b, float* c, int k, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += value(a[blockIdx.y * k + i]) * value(b[i * n + column]);
    sum = __uint_as_float(__float_as_uint(sum) & 0xFFFFE000u);
  }
  c[blockIdx.y * n + column] = sum;
}
