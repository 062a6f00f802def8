// The reducer: one block for each head, over its partitions.
#pragma once
#include "../trees.cuh"

namespace scalar {

struct ReduceMemory {
  float weight[kPartitions];
  WarpValues maximum;
  WarpValues sum;
};

// out f16 [1, G, D]; partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256]. A length of 0 or less gives
// zeros without reading the workspace.
template <int G, int D>
__device__ __forceinline__ void reduce_partitions(ReduceMemory& m, const int* lengths, const float* partial,
                                                  const float* maximum, const float* sums, __half* out) {
  const int head = blockIdx.x;
  const int own = threadIdx.x;  // a partition, then a dimension
  const int active = active_partitions(lengths[0]);
  if (active == 0) {
    if (own < D) out[head * D + own] = __ushort_as_half(0);
    return;
  }

  const float own_maximum = own < active ? maximum[workspace_row(head, own)] : kNoMaximum;
  publish(m.maximum, paged::max_tree(own_maximum));
  __syncthreads();
  float w = 0.0f;
  if (own < active) {
    w = sums[workspace_row(head, own)] * paged::weight_of(own_maximum, max_of_warps(m.maximum));
    m.weight[own] = w;
  }
  publish(m.sum, paged::sum_tree(w));
  __syncthreads();
  if (own >= D) return;
  float acc = 0.0f;
  for (int i = 0; i < active; ++i) {
    acc = __fmaf_rn(m.weight[i], partial[workspace_row(head, i) * D + own], acc);
  }
  out[head * D + own] = __float2half_rn(acc * (1.0f / sum_of_warps(m.sum)));
}

}  // namespace scalar
