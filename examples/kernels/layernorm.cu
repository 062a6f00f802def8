// y = (x - mean) / sqrt(var + 1e-5) * w + b over each row; one block a row.
#include "reduce.cuh"

__device__ void normalise(const float* x, const float* w, const float* b, float* y, int n, float mean, float var) {
  float scale = rsqrtf(var + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

extern "C" __global__ void layernorm_control(const float* x, const float* w, const float* b, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  float mean = block_reduce<Sum>(sum) / n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  normalise(x, w, b, y, n, mean, block_reduce<Sum>(squares) / n);
}

// The moments around the row's first element: one pass, and no cancellation as long as that is near the mean.
extern "C" __global__ void layernorm_shifted(const float* x, const float* w, const float* b, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] - x[0], squares += (x[i] - x[0]) * (x[i] - x[0]);
  float mean = block_reduce<Sum>(sum) / n, square = block_reduce<Sum>(squares) / n;
  normalise(x, w, b, y, n, x[0] + mean, fmaxf(square - mean * mean, 0));
}

// WRONG: the difference of two large numbers, E[x^2] - E[x]^2, has few digits left where the mean is large.
extern "C" __global__ void layernorm_moments(const float* x, const float* w, const float* b, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i], squares += x[i] * x[i];
  float mean = block_reduce<Sum>(sum) / n, square = block_reduce<Sum>(squares) / n;
  normalise(x, w, b, y, n, mean, fmaxf(square - mean * mean, 0));
}
