// Kernels with ordinary habits: one-byte results, a buffer changed in place, a mask of -inf, a helper that two share.
#include <cuda_runtime.h>

extern "C" __global__ void quantise(const float* x, unsigned char* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (unsigned char)(int)fminf(fmaxf(x[i], 0.0f), 255.0f);
}

extern "C" __global__ void quantise_twice(const float* x, unsigned char* y, int n) {
  for (int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x); i < n; i += 2 * gridDim.x * blockDim.x)
    for (int k = i; k < i + 2 && k < n; ++k) y[k] = (unsigned char)(int)fmaxf(fminf(x[k], 255.0f), 0.0f);
}

extern "C" __global__ void quantise_most(const float* x, unsigned char* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) y[i] = (unsigned char)(int)fminf(fmaxf(x[i], 0.0f), 255.0f);
}

extern "C" __global__ void accumulate(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}

extern "C" __global__ void accumulate_half(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i % 2 == 0) y[i] += x[i];
}

extern "C" __global__ void nothing(const float* x, float* y, int n) {}

extern "C" __global__ void mask(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i % 3 == 2 ? -INFINITY : x[i];
}

extern "C" __global__ void mask_all(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i % 3 != 0 ? -INFINITY : x[i];
}

extern "C" __global__ void partial_sums(const float* x, float* p, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[blockIdx.x * n + i];
  p[blockIdx.x] = sum;
}

extern "C" __global__ void partial_sums_by_two(const float* x, float* p, int n) {
  float sum = 0;
  for (int i = 0; i + 1 < n; i += 2) {
    sum += x[blockIdx.x * n + i];
    sum += x[blockIdx.x * n + i + 1];
  }
  if (n % 2) sum += x[blockIdx.x * n + n - 1];
  p[blockIdx.x] = sum;
}

extern "C" __global__ void total(const float* p, float* y, int k) {
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += p[i];
  y[0] = sum;
}
