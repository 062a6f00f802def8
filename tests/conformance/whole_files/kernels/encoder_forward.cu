// out[b, t, :] = wte[inp[b, t], :] + wpe[t, :], each token's embedding with its position's.
// ./encoder_forward 1 is the plain kernel, ./encoder_forward 2 the packed one.
#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include "llm/packed.cuh"

void encoder_forward_cpu(float* out, const int* inp, const float* wte, const float* wpe, int B, int T, int C) {
  for (int b = 0; b < B; b++)
    for (int t = 0; t < T; t++)
      for (int i = 0; i < C; i++)
        out[(b * T + t) * C + i] = wte[inp[b * T + t] * C + i] + wpe[t * C + i];
}

__global__ void encoder_forward_kernel1(floatX* out, const int* inp, const floatX* wte, const floatX* wpe, int B, int T,
                                        int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  int N = B * T * C;
  if (idx < N) {
    int bt = idx / C;
    int t = bt % T;
    int c = idx % C;
    out[idx] = (floatX)((float)wte[inp[bt] * C + c] + (float)wpe[t * C + c]);
  }
}

__global__ void encoder_forward_kernel2(floatX* out, const int* inp, const floatX* wte, const floatX* wpe, int B, int T,
                                        int C) {
  int idx = (blockIdx.x * blockDim.x + threadIdx.x) * x128::size;
  if (idx >= B * T * C) return;
  int bt = idx / C;
  int t = bt % T;
  int c = idx % C;
  x128 packed_out;
  x128 token = load128cs(wte + inp[bt] * C + c);
  x128 position = load128cs(wpe + t * C + c);
  for (int k = 0; k < x128::size; k++) packed_out[k] = (floatX)((float)token[k] + (float)position[k]);
  store128(out + idx, packed_out);
}

void encoder_forward1(floatX* out, const int* inp, const floatX* wte, const floatX* wpe, int B, int T, int C,
                      const int block_size) {
  const int grid_size = ceil_div(B * T * C, block_size);
  encoder_forward_kernel1<<<grid_size, block_size>>>(out, inp, wte, wpe, B, T, C);
  cudaCheck(cudaGetLastError());
}

void encoder_forward2(floatX* out, const int* inp, const floatX* wte, const floatX* wpe, int B, int T, int C,
                      const int block_size, cudaStream_t stream) {
  NVTX_RANGE_FN();
  const int grid_size = ceil_div(B * T * C, (int)(block_size * x128::size));
  encoder_forward_kernel2<<<grid_size, block_size, 0, stream>>>(out, inp, wte, wpe, B, T, C);
  cudaCheck(cudaGetLastError());
}

int main(int argc, char** argv) {
  int B = 8, T = 1024, C = 768, V = 50257;
  cudaCheck(cudaSetDevice(0));
  std::vector<int> inp(B * T);
  for (auto& token : inp) token = rand() % V;
  float* wte = make_random_float(V * C);
  float* wpe = make_random_float(T * C);
  std::vector<float> expected(B * T * C);
  encoder_forward_cpu(expected.data(), inp.data(), wte, wpe, B, T, C);
  int kernel_num = argc > 1 ? atoi(argv[1]) : 2;
  floatX *d_out, *d_wte, *d_wpe;
  int* d_inp;
  cudaCheck(cudaMalloc(&d_out, B * T * C * sizeof(floatX)));
  cudaCheck(cudaMalloc(&d_inp, B * T * sizeof(int)));
  cudaCheck(cudaMalloc(&d_wte, V * C * sizeof(floatX)));
  cudaCheck(cudaMalloc(&d_wpe, T * C * sizeof(floatX)));
  cudaCheck(cudaMemcpy(d_inp, inp.data(), B * T * sizeof(int), cudaMemcpyHostToDevice));
  for (int block_size : {32, 64, 128, 256, 512, 1024}) {
    printf("Checking block size %d.\n", block_size);
    if (kernel_num == 1) encoder_forward1(d_out, d_inp, d_wte, d_wpe, B, T, C, block_size);
    else encoder_forward2(d_out, d_inp, d_wte, d_wpe, B, T, C, block_size, 0);
    validate_result(d_out, expected.data(), "out", B * T * C, 1e-5f);
  }
  free(wte), free(wpe);
  cudaCheck(cudaFree(d_out));
  return 0;
}
