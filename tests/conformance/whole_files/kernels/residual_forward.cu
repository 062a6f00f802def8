// out = inp1 + inp2, in half precision when compiled with -DENABLE_FP16.
#include "llm/packed.cuh"
#include <string>
#include <iostream>

__global__ void residual_forward_kernel1(floatX* out, const floatX* inp1, const floatX* inp2, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N) out[idx] = (floatX)((float)inp1[idx] + (float)inp2[idx]);
}

__global__ void residual_forward_kernel2(floatX* out, const floatX* inp1, const floatX* inp2, int N) {
  int idx = (blockIdx.x * blockDim.x + threadIdx.x) * x128::size;
  if (idx >= N) return;
  x128 packed_out;
  x128 packed_inp1 = load128cs(inp1 + idx);
  x128 packed_inp2 = load128cs(inp2 + idx);
  for (int k = 0; k < packed_inp1.size; ++k) packed_out[k] = (floatX)((float)packed_inp1[k] + (float)packed_inp2[k]);
  store128(out + idx, packed_out);
}

struct Options {
  int kernel = 2;
  std::string dtype = "fp32";
  explicit Options(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
      if (std::string(argv[i]) == "--half") dtype = "fp16";
      else kernel = std::stoi(argv[i]);
    }
  }
};

template <typename Launcher>
float benchmark(int repeats, Launcher launcher) {
  cudaEvent_t start, stop;
  cudaCheck(cudaEventCreate(&start));
  cudaCheck(cudaEventCreate(&stop));
  cudaCheck(cudaEventRecord(start));
  for (int i = 0; i < repeats; i++) launcher();
  cudaCheck(cudaEventRecord(stop));
  cudaCheck(cudaEventSynchronize(stop));
  float elapsed;
  cudaCheck(cudaEventElapsedTime(&elapsed, start, stop));
  return elapsed / repeats;
}

int main(int argc, char** argv) {
  Options options(argc, argv);
  int N = 8 * 1024 * 768;
  floatX *out, *inp1, *inp2;
  cudaCheck(cudaMalloc(&out, N * sizeof(floatX)));
  cudaCheck(cudaMalloc(&inp1, N * sizeof(floatX)));
  cudaCheck(cudaMalloc(&inp2, N * sizeof(floatX)));
  float time = benchmark(100, [&]() {
    if (options.kernel == 1) residual_forward_kernel1<<<ceil_div(N, 256), 256>>>(out, inp1, inp2, N);
    else residual_forward_kernel2<<<ceil_div(N, (int)(256 * x128::size)), 256>>>(out, inp1, inp2, N);
  });
  std::cout << "time " << time << " ms | bandwidth " << N * 3 * sizeof(floatX) / time / 1e6 << " GB/s" << std::endl;
}
