// out[bt, oc] = sum over c of inp[bt, c] * weight[oc, c], plus bias[oc].
// Version 1 has a thread for each output, version 2 tiles in shared memory; a host function calls cuBLAS.
#include "llm/checks.h"
#include <omp.h>

void matmul_forward_cpu(float* out, const float* inp, const float* weight, const float* bias, int BT, int C, int OC) {
#pragma omp parallel for
  for (int bt = 0; bt < BT; bt++) {
    for (int o = 0; o < OC; o++) {
      float val = (bias != NULL) ? bias[o] : 0.0f;
      for (int i = 0; i < C; i++) val += inp[bt * C + i] * weight[o * C + i];
      out[bt * OC + o] = val;
    }
  }
}

__global__ void matmul_forward_kernel1(float* out, const float* inp, const float* weight, const float* bias, int BT, int C,
                                       int OC) {
  int bt = blockIdx.x * blockDim.x + threadIdx.x;
  int oc = blockIdx.y * blockDim.y + threadIdx.y;
  if (bt < BT && oc < OC) {
    float val = (bias != NULL) ? bias[oc] : 0.0f;
    for (int i = 0; i < C; i++) val = fmaf(inp[bt * C + i], weight[oc * C + i], val);
    out[bt * OC + oc] = val;
  }
}

constexpr int TILE = 16;

__global__ void __launch_bounds__(TILE* TILE) matmul_forward_kernel2(float* out, const float* inp, const float* weight,
                                                                     const float* bias, int BT, int C, int OC) {
  __shared__ float lhs[TILE][TILE + 1];
  __shared__ float rhs[TILE][TILE + 1];
  int bt = blockIdx.x * TILE + threadIdx.y;
  int oc = blockIdx.y * TILE + threadIdx.x;
  int rhs_row = blockIdx.y * TILE + threadIdx.y;
  float val = (bias != NULL && oc < OC) ? bias[oc] : 0.0f;
  for (int start = 0; start < C; start += TILE) {
    int c = start + threadIdx.x;
    lhs[threadIdx.y][threadIdx.x] = bt < BT && c < C ? inp[bt * C + c] : 0.f;
    rhs[threadIdx.y][threadIdx.x] = rhs_row < OC && c < C ? weight[rhs_row * C + c] : 0.f;
    __syncthreads();
    int end = min(TILE, C - start);
    for (int k = 0; k < end; k++) val = fmaf(lhs[threadIdx.y][k], rhs[threadIdx.x][k], val);
    __syncthreads();
  }
  if (bt < BT && oc < OC) out[bt * OC + oc] = val;
}

void matmul_forward_cublas(float* out, const float* inp, const float* weight, int BT, int C, int OC) {
  const float alpha = 1.0f, beta = 0.0f;
  cublasCheck(cublasSgemm(cublas_handle, CUBLAS_OP_T, CUBLAS_OP_N, OC, BT, C, &alpha, weight, C, inp, C, &beta, out, OC));
}

void matmul_forward(int kernel_num, float* out, float* inp, float* weight, float* bias, int BT, int C, int OC) {
  dim3 threads(TILE, TILE);
  dim3 blocks(ceil_div(BT, TILE), ceil_div(OC, TILE));
  switch (kernel_num) {
    case 1: matmul_forward_kernel1<<<blocks, threads>>>(out, inp, weight, bias, BT, C, OC); break;
    case 2: matmul_forward_kernel2<<<blocks, threads>>>(out, inp, weight, bias, BT, C, OC); break;
    case 3: matmul_forward_cublas(out, inp, weight, BT, C, OC); break;
  }
  cudaCheck(cudaGetLastError());
}

int main(int argc, char** argv) {
  cublasCheck(cublasCreate(&cublas_handle));
  cudaDeviceProp deviceProp;
  cudaCheck(cudaGetDeviceProperties(&deviceProp, 0));
  int enable_tf32 = deviceProp.major >= 8 ? 1 : 0;
  cublas_compute_type = enable_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasMath_t mode = enable_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
  cublasCheck(cublasSetMathMode(cublas_handle, mode));
  int BT = 32 * 1024, C = 768, OC = 768 * 4;
  float *out, *inp, *weight, *bias;
  cudaCheck(cudaMallocManaged(&out, BT * OC * sizeof(float)));
  matmul_forward(argc > 1 ? atoi(argv[1]) : 2, out, inp, weight, bias, BT, C, OC);
  cublasCheck(cublasDestroy(cublas_handle));
  return 0;
}
