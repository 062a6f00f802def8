__device__ float wsum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o); return v; }
template <bool Bug> __device__ void f(const float* x, float* y, int k) {
  int lane = threadIdx.x; float w = x[blockIdx.x * 32 + lane];
  if (Bug) { if (lane < k) { float t = wsum(w); y[blockIdx.x * k + lane] = w / t; } }
  else { float t = wsum(lane < k ? w : 0.0f); if (lane < k) y[blockIdx.x * k + lane] = w / t; }
}
extern "C" __global__ void good(const float* x, float* y, int k) { f<false>(x, y, k); }
extern "C" __global__ void bad(const float* x, float* y, int k) { f<true>(x, y, k); }
