// The reducer in blocks of 32 dimensions of a head: all of a block's loads go out at once, so that the chain over
// ascending partitions runs from shared memory.
#pragma once
#include "trees.cuh"

namespace scalar {

constexpr int kColumns = 32;

struct ColumnMemory {
  float partial[kPartitions][kColumns];
  float weight[kPartitions];
  WarpValues maximum;
  WarpValues sum;
};

// Block (head, dimensions / 32) of 256 threads. out f16 [1, G, D]; partial f32 [1, G, 256, D]; maximum, sums f32
// [1, G, 256]. A length of 0 or less gives zeros, and the workspace is not read.
template <int G, int D>
__device__ __forceinline__ void reduce_columns(ColumnMemory& m, const int* lengths, const float* partial,
                                               const float* maximum, const float* sums, __half* out) {
  const int head = blockIdx.x;
  const int own = threadIdx.x;  // a partition
  const int lane = own % 32;
  const int d = blockIdx.y * kColumns + lane;
  const int active = active_partitions(lengths[0]);
  if (active == 0) {
    if (own < kColumns) out[head * D + d] = __ushort_as_half(0);
    return;
  }

  const float own_maximum = own < active ? maximum[workspace_row(head, own)] : kNoMaximum;
  const float own_sum = own < active ? sums[workspace_row(head, own)] : 0.0f;
  float column[kPartitions / kWarps];
#pragma unroll
  for (int i = 0; i < kPartitions / kWarps; ++i) {
    const int row = own / 32 + i * kWarps;
    column[i] = row < active ? partial[workspace_row(head, row) * D + d] : 0.0f;
  }
  publish(m.maximum, paged::max_tree(own_maximum));
  __syncthreads();
  float w = 0.0f;
  if (own < active) w = own_sum * paged::weight_of(own_maximum, max_of_warps(m.maximum));
  m.weight[own] = w;
  publish(m.sum, paged::sum_tree(w));
#pragma unroll
  for (int i = 0; i < kPartitions / kWarps; ++i) m.partial[own / 32 + i * kWarps][lane] = column[i];
  __syncthreads();
  if (own >= kColumns) return;
  float acc = 0.0f;
#pragma unroll 16
  for (int i = 0; i < active; ++i) acc = __fmaf_rn(m.weight[i], m.partial[i][lane], acc);
  out[head * D + d] = __float2half_rn(acc * (1.0f / sum_of_warps(m.sum)));
}

}  // namespace scalar
