// out = softmax over the last dimension. Version 1 gives a block to each row, version 2 a warp.
#include "llm/packed.cuh"
#include <algorithm>
#include <float.h>

namespace {

template <bool Streaming>
__device__ void softmax_row(float* y, const float* x, int C) {
  const int lane = threadIdx.x % warpSize;
  float maxval = -INFINITY;
  for (int i = lane; i < C; i += warpSize) maxval = fmaxf(maxval, Streaming ? __ldcs(x + i) : x[i]);
  maxval = warp_max(maxval);
  float sum = 0.0f;
  for (int i = lane; i < C; i += warpSize) sum += expf(x[i] - maxval);
  sum = warp_sum(sum);
  for (int i = lane; i < C; i += warpSize) {
    float value = expf(x[i] - maxval) / sum;
    if (Streaming) __stcs(y + i, value);
    else y[i] = value;
  }
}

}  // namespace

__global__ void softmax_forward_kernel1(float* out, const float* inp, int N, int C) {
  int row = blockIdx.x;
  softmax_row<false>(out + row * C, inp + row * C, C);
}

template <int WarpsPerBlock>
__global__ void __launch_bounds__(32 * WarpsPerBlock) softmax_forward_kernel2(float* out, const float* inp, int N, int C) {
  int row = blockIdx.x * WarpsPerBlock + threadIdx.x / warpSize;
  if (row < N) softmax_row<true>(out + row * C, inp + row * C, C);
}

static void softmax_forward_cpu(float* out, const float* inp, int N, int C) {
  for (int i = 0; i < N; i++) {
    const float* row = inp + i * C;
    float maxval = *std::max_element(row, row + C);
    double sum = 0.0;
    for (int j = 0; j < C; j++) sum += out[i * C + j] = expf(row[j] - maxval);
    for (int j = 0; j < C; j++) out[i * C + j] /= (float)sum;
  }
}

void softmax_forward(int kernel_num, float* out, const float* inp, int N, int C) {
  if (kernel_num == 1) softmax_forward_kernel1<<<N, 32>>>(out, inp, N, C);
  else softmax_forward_kernel2<4><<<ceil_div(N, 4), 128>>>(out, inp, N, C);
  cudaCheck(cudaGetLastError());
}

int main(int argc, char** argv) {
  int N = 8192, C = 50257;
  float* inp = make_random_float((size_t)N * C);
  float* expected = new float[(size_t)N * C];
  softmax_forward_cpu(expected, inp, N, C);
  float *d_out, *d_inp;
  cudaCheck(cudaMalloc(&d_out, (size_t)N * C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_inp, (size_t)N * C * sizeof(float)));
  softmax_forward(argc > 1 ? atoi(argv[1]) : 2, d_out, d_inp, N, C);
  validate_result(d_out, expected, "out", (size_t)N * C, 1e-4f);
  delete[] expected;
}
