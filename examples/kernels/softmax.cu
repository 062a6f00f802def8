// y[row, :] = softmax(x[row, :]); one block a row.
#include "reduce.cuh"

template <bool Shifted>
__device__ void softmax(const float* x, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, x[i]);
  top = Shifted ? block_reduce<Max>(top) : 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - top);
  sum = block_reduce<Sum>(sum);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - top) / sum;
}

extern "C" __global__ void softmax_control(const float* x, float* y, int n) { softmax<true>(x, y, n); }

// One pass for maximum and sum: a lane rescales its sum when its maximum grows.
extern "C" __global__ void softmax_online(const float* x, float* y, int n) {
  x += blockIdx.x * n, y += blockIdx.x * n;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float next = fmaxf(top, x[i]);
    sum = sum * expf(top - next) + expf(x[i] - next);
    top = next;
  }
  float all = block_reduce<Max>(top);
  sum = block_reduce<Sum>(top == -INFINITY ? 0 : sum * expf(top - all));
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - all) / sum;
}

// WRONG: without the maximum taken off, expf overflows where an input exceeds 88.7.
extern "C" __global__ void softmax_unshifted(const float* x, float* y, int n) { softmax<false>(x, y, n); }
