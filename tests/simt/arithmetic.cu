// Conversions and arithmetic intrinsics, one result a thread.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void to_half(const float* x, unsigned short* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __half_as_ushort(__float2half_rn(x[i]));
}
__global__ void to_float(const unsigned short* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __half2float(__ushort_as_half(x[i]));
}
// add, sub, mul, fma, max, min of halves
__global__ void halves(const __half* a, const __half* b, const __half* c, __half* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = __hadd(a[i], b[i]);
    y[n + i] = a[i] - b[i];
    y[2 * n + i] = a[i] * b[i];
    y[3 * n + i] = __hfma(a[i], b[i], c[i]);
    const __half2 both = __hfma2(__halves2half2(a[i], b[i]), __half2half2(b[i]), __floats2half2_rn(1.0f, -1.0f));
    y[4 * n + i] = __low2half(both);
    y[5 * n + i] = __hmax(__hneg(a[i]), b[i]);
  }
}
__global__ void to_fp8(const float* x, unsigned char* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E4M3);
    y[n + i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
    y[2 * n + i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E5M2);
    y[3 * n + i] = __nv_fp8_e4m3(x[i]).__x;
  }
}
__global__ void from_fp8(unsigned short* y) {
  const unsigned char x = threadIdx.x;
  y[x] = __half_raw(__nv_cvt_fp8_to_halfraw(x, __NV_E4M3)).x;
  y[256 + x] = __half_raw(__nv_cvt_fp8_to_halfraw(x, __NV_E5M2)).x;
}
__global__ void integers(const unsigned* x, unsigned* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned* row = y + 9 * i;
    row[0] = __popc(x[i]);
    row[1] = __clz(x[i]);
    row[2] = __ffs(x[i]);
    row[3] = __brev(x[i]);
    row[4] = __umulhi(x[i], 0x9e3779b9u);
    row[5] = __byte_perm(x[i], 0x44556677u, 0x5410);
    row[6] = __funnelshift_l(x[i], 0x80000001u, 4);
    row[7] = min(static_cast<int>(x[i]), -1) + max(x[i], 7u);
    row[8] = __float_as_uint(__int_as_float(__float_as_int(__uint_as_float(x[i]))));
  }
}
__global__ void rounding(const float* x, int* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[4 * i] = __float2int_rn(x[i]);
    y[4 * i + 1] = __float2int_rz(x[i]);
    y[4 * i + 2] = __float2int_rd(x[i]);
    y[4 * i + 3] = __float2int_ru(x[i]);
  }
}
// a * b + c twice: as two operations, and as one
__global__ void contraction(const float* x, float* y) {
  y[0] = x[0] * x[1] + x[2];
  y[1] = __fadd_rn(__fmul_rn(x[0], x[1]), x[2]);
  y[2] = fmaf(x[0], x[1], x[2]);
  y[3] = fmaxf(x[3], x[4]) + max(x[3], x[4]);
  y[4] = max(-0.0f, x[5]);
  y[5] = min(0.0f, -x[5]);
}
