// out[row] = the first column with the greatest logit, as greedy sampling takes it.
#include "llm/checks.h"
#include <cub/cub.cuh>
#include <float.h>
#include <limits.h>
#include <random>

struct Candidate {
  float value;
  int index;
};

__host__ __device__ inline Candidate better(Candidate a, Candidate b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

__device__ Candidate warp_best(Candidate best) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    Candidate other = {__shfl_xor_sync(~0u, best.value, offset), __shfl_xor_sync(~0u, best.index, offset)};
    best = better(best, other);
  }
  return best;
}

__global__ void argmax_kernel1(int* out, const float* logits, int V) {
  Candidate best = {-FLT_MAX, INT_MAX};
  for (int i = threadIdx.x; i < V; i += 32) best = better(best, {logits[blockIdx.x * V + i], i});
  best = warp_best(best);
  if (threadIdx.x == 0) out[blockIdx.x] = best.index;
}

template <int Threads>
__global__ void argmax_kernel2(int* out, const float* logits, int V) {
  extern __shared__ char memory[];
  Candidate* candidates = reinterpret_cast<Candidate*>(memory);
  Candidate best = {-FLT_MAX, INT_MAX};
  for (int i = threadIdx.x; i < V; i += Threads) best = better(best, {logits[blockIdx.x * V + i], i});
  best = warp_best(best);
  if (threadIdx.x % 32 == 0) candidates[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = threadIdx.x < Threads / 32 ? candidates[threadIdx.x] : Candidate{-FLT_MAX, INT_MAX};
  best = warp_best(best);
  if (threadIdx.x == 0) out[blockIdx.x] = best.index;
}

int sample_argmax(const float* logits, int n) {
  Candidate best = {-FLT_MAX, INT_MAX};
  for (int i = 0; i < n; i++) best = better(best, Candidate{logits[i], i});
  return best.index;
}

void argmax(int kernel_num, int* out, const float* logits, int rows, int V) {
  if (kernel_num == 1) argmax_kernel1<<<rows, 32>>>(out, logits, V);
  else argmax_kernel2<256><<<rows, 256, 8 * sizeof(Candidate)>>>(out, logits, V);
  cudaCheck(cudaGetLastError());
}

int main(int argc, char* argv[]) {
  std::mt19937 generator(argc);
  std::normal_distribution<float> normal;
  std::vector<float> logits(50257);
  for (float& logit : logits) logit = normal(generator);
  printf("%d\n", sample_argmax(logits.data(), logits.size()));
  return 0;
}
