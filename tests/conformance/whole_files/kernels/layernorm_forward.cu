// out = (x - mean) * rstd * weight + bias over the last dimension; mean and rstd are kept for the backward pass.
// Version 1 is two kernels, for the statistics and for the rest; version 2 is one kernel, a warp a row.
#include "llm/packed.cuh"
#include <vector>

namespace cg = cooperative_groups;

static const float epsilon = 1e-5f;

__device__ float2 row_statistics(const float* x, int C, cg::thread_block_tile<32>& warp) {
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float m = sum / C;
  float squares = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float diff = x[i] - m;
    squares = fmaf(diff, diff, squares);
  }
  squares = cg::reduce(warp, squares, cg::plus<float>{});
  return make_float2(m, rsqrtf(squares / C + epsilon));
}

__global__ void layernorm_statistics_kernel(float* __restrict__ mean, float* __restrict__ rstd, const float* inp, int N,
                                            int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  float2 both = row_statistics(inp + idx * C, C, warp);
  if (warp.thread_rank() == 0) {
    __stcs(mean + idx, both.x);
    __stcs(rstd + idx, both.y);
  }
}

__global__ void layernorm_apply_kernel(float* out, const float* inp, const float* mean, const float* rstd,
                                       const float* weight, const float* bias, int N, int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * C) return;
  int row = idx / C, col = idx % C;
  float n = __ldcs(rstd + row) * (__ldcs(inp + idx) - __ldcs(mean + row));
  out[idx] = fmaf(n, weight[col], bias[col]);
}

__global__ void layernorm_forward_kernel2(float* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd,
                                          const float* __restrict__ inp, const float* __restrict__ weight,
                                          const float* __restrict__ bias, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float* x = inp + idx * C;
  float2 both = row_statistics(x, C, warp);
  if (warp.thread_rank() == 0 && mean != nullptr) __stcs(mean + idx, both.x);
  if (warp.thread_rank() == 0 && rstd != nullptr) __stcs(rstd + idx, both.y);
  for (int c = warp.thread_rank(); c < C; c += warp.size()) {
    float n = both.y * (__ldcs(x + c) - both.x);
    __stcs(out + idx * C + c, fmaf(n, weight[c], bias[c]));
  }
}

extern "C" {
void layernorm_forward1(float* out, float* mean, float* rstd, float* inp, float* weight, float* bias, int B, int T, int C,
                        const int block_size) {
  const int N = B * T;
  layernorm_statistics_kernel<<<ceil_div(N * 32, block_size), block_size>>>(mean, rstd, inp, N, C);
  cudaCheck(cudaGetLastError());
  layernorm_apply_kernel<<<ceil_div(N * C, block_size), block_size>>>(out, inp, mean, rstd, weight, bias, N, C);
  cudaCheck(cudaGetLastError());
}
void layernorm_forward2(float* out, float* mean, float* rstd, float* inp, float* weight, float* bias, int B, int T, int C,
                        const int block_size) {
  const int N = B * T;
  layernorm_forward_kernel2<<<ceil_div(N * 32, block_size), block_size>>>(out, mean, rstd, inp, weight, bias, N, C);
  cudaCheck(cudaGetLastError());
}
}

int main(int argc, char** argv) {
  srand(0);
  std::vector<float> out(8 * 1024 * 768);
  float* inp = make_random_float(out.size());
  float *d_out, *d_mean, *d_rstd, *d_inp, *d_weight, *d_bias;
  cudaCheck(cudaMalloc((void**)&d_out, out.size() * sizeof(float)));
  if (argc > 1 && atoi(argv[1]) == 1) layernorm_forward1(d_out, d_mean, d_rstd, d_inp, d_weight, d_bias, 8, 1024, 768, 256);
  else layernorm_forward2(d_out, d_mean, d_rstd, d_inp, d_weight, d_bias, 8, 1024, 768, 256);
  validate_result(d_out, out.data(), "out", out.size());
  free(inp);
}
