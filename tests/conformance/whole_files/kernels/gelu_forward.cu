// out = gelu(inp), by the approximation with tanh.
#include "llm/packed.cuh"

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)

void gelu_forward_cpu(float* out, const float* inp, int N) {
  for (int i = 0; i < N; i++) {
    float x = inp[i];
    float cube = 0.044715f * x * x * x;
    out[i] = 0.5f * x * (1.0f + tanhf(GELU_SCALING_FACTOR * (x + cube)));
  }
}

__device__ __forceinline__ float gelu(float x) {
  float cube = 0.044715f * x * x * x;
  return 0.5f * x * (1.0f + tanhf(GELU_SCALING_FACTOR * (x + cube)));
}

__global__ void gelu_forward_kernel1(floatX* out, const floatX* inp, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) out[i] = (floatX)gelu((float)inp[i]);
}

__global__ void gelu_forward_kernel2(floatX* out, const floatX* inp, int N) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * x128::size;
  if (i < N) {
    x128 packed_out;
    x128 packed_inp = load128cs(inp + i);
    for (int k = 0; k < packed_inp.size; ++k) packed_out[k] = (floatX)gelu((float)packed_inp[k]);
    store128cs(out + i, packed_out);
  }
}

void gelu_forward(int kernel_num, floatX* out, const floatX* inp, int N, const int block_size) {
  switch (kernel_num) {
    case 1: gelu_forward_kernel1<<<ceil_div(N, block_size), block_size>>>(out, inp, N); break;
    case 2: gelu_forward_kernel2<<<ceil_div(N, block_size * (int)x128::size), block_size>>>(out, inp, N); break;
    default: printf("Invalid kernel number\n"); exit(1);
  }
  cudaCheck(cudaGetLastError());
}

int main(int argc, const char** argv) {
  int N = 8 * 1024 * 3072;
  float* inp = make_random_float(N);
  float* expected = (float*)malloc(N * sizeof(float));
  gelu_forward_cpu(expected, inp, N);
  floatX *d_out, *d_inp;
  cudaCheck(cudaMalloc(&d_out, N * sizeof(floatX)));
  cudaCheck(cudaMalloc(&d_inp, N * sizeof(floatX)));
  gelu_forward(argc > 1 ? atoi(argv[1]) : 2, d_out, d_inp, N, 256);
  validate_result(d_out, expected, "out", N, 1e-2f);
}
