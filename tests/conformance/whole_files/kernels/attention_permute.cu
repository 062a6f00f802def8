// From qkv (B, T, 3, NH, HS) to q, k and v, each (B, NH, T, HS), before the products of the attention.
#include "llm/checks.h"
#include "llm/packed.cuh"
#include <vector>

__global__ void permute_kernel1(float* q, float* k, float* v, const float* inp, int B, int N, int NH, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= B * NH * N * d) return;
  int b = idx / (NH * N * d);
  int rest = idx % (NH * N * d);
  int nh_ = rest / (N * d);
  rest = rest % (N * d);
  int n = rest / d;
  int d_ = rest % d;
  int inp_idx = (b * N * 3 * NH * d) + (n * 3 * NH * d) + (0 * NH * d) + (nh_ * d) + d_;
  q[idx] = __ldcs(&inp[inp_idx]);
  k[idx] = __ldcs(&inp[inp_idx + NH * d]);
  v[idx] = __ldcs(&inp[inp_idx + 2 * (NH * d)]);
}

__global__ void permute_kernel2(float* __restrict__ q, float* __restrict__ k, float* __restrict__ v,
                                const float* __restrict__ inp, int B, int N, int NH, int d) {
  const int n = blockIdx.x, nh = blockIdx.y, b = blockIdx.z;
  const float4* from = reinterpret_cast<const float4*>(inp + ((b * N + n) * 3 * NH + nh) * d);
  const int to = ((b * NH + nh) * N + n) * d / 4;
  for (int i = threadIdx.x; i < d / 4; i += blockDim.x) {
    reinterpret_cast<float4*>(q)[to + i] = from[i];
    reinterpret_cast<float4*>(k)[to + i] = from[NH * d / 4 + i];
    reinterpret_cast<float4*>(v)[to + i] = from[2 * NH * d / 4 + i];
  }
}

__global__ void unpermute_kernel(float* inp, float* out, int B, int N, int NH, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * NH * N * d) {
    int b = idx / (NH * N * d), rest = idx % (NH * N * d);
    int nh_ = rest / (N * d), n = rest % (N * d) / d, d_ = rest % d;
    out[(b * NH * N * d) + (n * NH * d) + (nh_ * d) + d_] = __ldcs(&inp[idx]);
  }
}

void attention_forward(float* out, float* vaccum, float* qkvr, float* preatt, const float* inp, int B, int T, int C, int NH,
                       const int block_size) {
  const int HS = C / NH;
  float *q = qkvr, *k = qkvr + B * T * C, *v = qkvr + 2 * B * T * C;
  int total_threads = B * NH * T * HS;
  int num_blocks = ceil_div(total_threads, block_size);
  permute_kernel1<<<num_blocks, block_size>>>(q, k, v, inp, B, T, NH, HS);
  cudaCheck(cudaGetLastError());
  const float alpha = 1.0f, beta = 0.0f;
  cublasCheck(cublasSgemmStridedBatched(cublas_handle, CUBLAS_OP_T, CUBLAS_OP_N, T, T, HS, &alpha, k, HS, T * HS, q, HS,
                                        T * HS, &beta, preatt, T, T * T, B * NH));
  cublasCheck(cublasSgemmStridedBatched(cublas_handle, CUBLAS_OP_N, CUBLAS_OP_N, HS, T, T, &alpha, v, HS, T * HS, preatt, T,
                                        T * T, &beta, vaccum, HS, T * HS, B * NH));
  unpermute_kernel<<<num_blocks, block_size>>>(vaccum, out, B, T, NH, HS);
  cudaCheck(cudaGetLastError());
}

int main() {
  std::vector<float> host(3 * 1024 * 768);
  float *d_inp, *d_qkvr;
  cudaCheck(cudaMalloc(&d_inp, host.size() * sizeof(float)));
  cudaCheck(cudaMalloc(&d_qkvr, host.size() * sizeof(float)));
  permute_kernel2<<<dim3(1024, 12, 1), 32>>>(d_qkvr, d_qkvr + 1024 * 768, d_qkvr + 2 * 1024 * 768, d_inp, 1, 1024, 12, 64);
  cudaCheck(cudaDeviceSynchronize());
}
