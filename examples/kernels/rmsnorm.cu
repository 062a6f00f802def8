// h += x, in place; y = h / sqrt(mean(h^2) + 1e-6) * w; one block a row.
#include "reduce.cuh"

template <bool Stored, bool Fused>
__device__ void rmsnorm(float* h, const float* x, const float* w, float* y, int n) {
  h += blockIdx.x * n, x += blockIdx.x * n, y += blockIdx.x * n;
  float squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = h[i] + x[i];
    if (Stored) h[i] = sum;
    squares += sum * sum;
  }
  squares = block_reduce<Sum>(squares);
  float scale = rsqrtf(squares / n + 1e-6f), norm = sqrtf(squares / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = Stored ? h[i] : h[i] + x[i];
    y[i] = Fused ? sum * (scale * w[i]) : sum / norm * w[i];
  }
}

extern "C" __global__ void rmsnorm_control(float* h, const float* x, const float* w, float* y, int n) {
  rmsnorm<true, false>(h, x, w, y, n);
}
extern "C" __global__ void rmsnorm_fused(float* h, const float* x, const float* w, float* y, int n) {
  rmsnorm<true, true>(h, x, w, y, n);
}
// WRONG: y is right, but the next layer finds the residual of the last one.
extern "C" __global__ void rmsnorm_unstored(float* h, const float* x, const float* w, float* y, int n) {
  rmsnorm<false, false>(h, x, w, y, n);
}
