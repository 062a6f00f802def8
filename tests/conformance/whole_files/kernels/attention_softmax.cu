// Causal softmax of the scores of an attention: out[n, t, :t+1] = softmax(scale * inp[n, t, :t+1]), and zeros behind.
#include "llm/packed.cuh"
#include <functional>
#include <map>

using Launcher = std::function<void(float*, const float*, float, int, int)>;

struct ScaledRow {
  const float* x;
  float scale;
  __device__ float operator()(int i) const { return scale * x[i]; }
};

template <typename Row>
__device__ void causal_row(float* y, const Row& row, int own_pos, int T, int lane) {
  float maxval = -INFINITY;
  for (int i = lane; i <= own_pos; i += 32) maxval = fmaxf(maxval, row(i));
  maxval = warp_max(maxval);
  float sum = 0.f;
  for (int i = lane; i <= own_pos; i += 32) sum += expf(row(i) - maxval);
  const float norm = 1.f / warp_sum(sum);
  for (int i = lane; i < T; i += 32) y[i] = i <= own_pos ? expf(row(i) - maxval) * norm : 0.f;
}

__global__ void scale_softmax_kernel1(float* out, const float* inp, float scale, int N, int T) {
  const int idx = blockIdx.x;
  causal_row(out + (size_t)idx * T, ScaledRow{inp + (size_t)idx * T, scale}, idx % T, T, threadIdx.x);
}

// One warp a row; the long rows come first.
__global__ void scale_softmax_kernel2(float* out, const float* inp, float scale, int N, int T) {
  namespace cg = cooperative_groups;
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int idx = (gridDim.x - blockIdx.x - 1) * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N * T) return;
  causal_row(out + (size_t)idx * T, ScaledRow{inp + (size_t)idx * T, scale}, idx % T, T, (int)warp.thread_rank());
}

static const std::map<int, Launcher> launchers = {
    {1, [](float* out, const float* inp, float scale, int N, int T) {
       scale_softmax_kernel1<<<N * T, 32>>>(out, inp, scale, N, T);
     }},
    {2, [](float* out, const float* inp, float scale, int N, int T) {
       scale_softmax_kernel2<<<ceil_div(N * T * 32, 256), 256>>>(out, inp, scale, N, T);
     }},
};

int main(int argc, char** argv) {
  const int kernel_num = argc > 1 ? atoi(argv[1]) : 2;
  float *out = nullptr, *inp = nullptr;
  launchers.at(kernel_num)(out, inp, 0.125f, 12, 1024);
  cudaCheck(cudaGetLastError());
}
