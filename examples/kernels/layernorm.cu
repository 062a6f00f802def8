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

// Welford's moments in one pass, joined as Chan, Golub and LeVeque do (1983): no cancellation wherever the data lie.
struct Moments {
  float count, mean, squares;
};

__device__ Moments join(Moments a, Moments b) {
  float count = a.count + b.count, apart = b.mean - a.mean;
  if (b.count == 0) return a;
  return {count, a.mean + apart * (b.count / count), a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

extern "C" __global__ void layernorm_welford(const float* x, const float* w, const float* b, float* y, int n) {
  __shared__ Moments of_warp[32];
  x += blockIdx.x * n, y += blockIdx.x * n;
  Moments mine = {0, 0, 0};
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine = join(mine, {1, x[i], 0});
  for (int o = 16; o > 0; o /= 2)
    mine = join(mine, {__shfl_down_sync(~0u, mine.count, o), __shfl_down_sync(~0u, mine.mean, o),
                       __shfl_down_sync(~0u, mine.squares, o)});
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  Moments all = of_warp[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) all = join(all, of_warp[i]);
  normalise(x, w, b, y, n, all.mean, all.squares / n);
}

// WRONG: the difference of two large numbers, E[x^2] - E[x]^2, has few digits left where the mean is large.
extern "C" __global__ void layernorm_moments(const float* x, const float* w, const float* b, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i], squares += x[i] * x[i];
  float mean = block_reduce<Sum>(sum) / n, square = block_reduce<Sum>(squares) / n;
  normalise(x, w, b, y, n, mean, fmaxf(square - mean * mean, 0));
}
