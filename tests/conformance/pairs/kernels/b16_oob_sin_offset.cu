template <bool Bug> __device__ void f(const float* x, const float* cs, float* y, int n, int d, int cap) {
  int r = blockIdx.x, i = threadIdx.x; if (i >= d / 2) return;
  float c = cs[r * (d / 2) + i], s = cs[(Bug ? cap : n) * (d / 2) + r * (d / 2) + i];
  float a = x[r * d + i], b = x[r * d + d / 2 + i]; y[r * d + i] = a * c - b * s; y[r * d + d / 2 + i] = b * c + a * s; }
extern "C" __global__ void good(const float* x, const float* cs, float* y, int n, int d, int cap) { f<false>(x, cs, y, n, d, cap); }
extern "C" __global__ void bad(const float* x, const float* cs, float* y, int n, int d, int cap) { f<true>(x, cs, y, n, d, cap); }
