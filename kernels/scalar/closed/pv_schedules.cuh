// One block of one partition and one head, as in control, with the schedule of the PV loads as a policy.
//
// A schedule is called with the weights p of `tokens` tokens, 1 or more, and a loader of the thread's V byte of a
// token. It computes acc = fma(p[i], v[i], acc) over ascending i, from +0. It chooses only when a byte is loaded, and
// must not ask for a token past the last.
#pragma once
#include "../bytewise/partition.cuh"

namespace scalar {

__device__ __forceinline__ float add_value(float acc, float weight, unsigned char code) {
  return __fmaf_rn(weight, DecodeByArithmetic()(code), acc);
}

// Four loads are issued before their four fmas.
struct PvUnroll4 {
  template <class Load>
  __device__ __forceinline__ float operator()(const float* weight, int tokens, const Load& load) const {
    float acc = 0.0f;
    int i = 0;
    for (; i + 4 <= tokens; i += 4) {
      unsigned char code[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) code[j] = load(i + j);
#pragma unroll
      for (int j = 0; j < 4; ++j) acc = add_value(acc, weight[i + j], code[j]);
    }
    for (; i < tokens; ++i) acc = add_value(acc, weight[i], load(i));
    return acc;
  }
};

// The next token's load is issued before the present one's fma.
struct PvPrefetch {
  template <class Load>
  __device__ __forceinline__ float operator()(const float* weight, int tokens, const Load& load) const {
    float acc = 0.0f;
    unsigned char code = load(0);
    for (int i = 0; i + 1 < tokens; ++i) {
      const unsigned char next = load(i + 1);
      acc = add_value(acc, weight[i], code);
      code = next;
    }
    return add_value(acc, weight[tokens - 1], code);
  }
};

// Block (partition, head). partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int D, class Schedule>
__device__ __forceinline__ void run_head(PartitionMemory<1>& m, paged::Inputs in, float* partial,
                                         float* maximum, float* sums) {
  const Partition partition = partition_of(blockIdx.x, in.lengths[0]);
  if (partition.tokens == 0) return;
  const PagesByTable pages = {in.table, in.page, partition.first};
  in.q += blockIdx.y * D;  // the one head that score_tokens sees
  score_tokens<1, D>(m, in, partition.tokens, DecodeByArithmetic(), pages);
  __syncthreads();
  find_maximum(m, partition.tokens);
  __syncthreads();
  weigh_tokens(m, partition.tokens);
  __syncthreads();

  const float sum = sum_of_warps(m.sum[0]);
  const int row = workspace_row(blockIdx.y, partition.index);
  const int d = threadIdx.x;
  if (d < D) {
    const auto load = [&](int i) {
      const TokenAddress address = pages(i);
      return paged::token_bytes(in.v, address.physical_page, address.position)[d];
    };
    partial[row * D + d] = Schedule()(m.score[0], partition.tokens, load) * ((1.0f / sum) * in.v_scale);
  }
  if (d == 0) {
    maximum[row] = max_of_warps(m.maximum[0]);
    sums[row] = sum;
  }
}

}  // namespace scalar
