// The merge of the splits: one block for each row and head.
#pragma once
#include "../../paged/arithmetic.cuh"
#include "row_tiles.cuh"

namespace grouped::staged {

constexpr int kMergeThreads = 128;  // at least kMaxSplits: a thread has one split's weight

// (max, sum) of a row and head in each split, and the weight of each split.
struct MergeMemory {
  float split_max[kMaxSplits];
  float split_sum[kMaxSplits];
  float weight[kMaxSplits];
};

// out f16 [rows, G, D]; partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2] = (max, sum). A row of length 0 is
// zeros, and its workspace is not read. Splits are merged in ascending order; one that the row does not see adds
// nothing, not even +0.
template <int G, int D>
__device__ __forceinline__ void merge_splits(MergeMemory& m, const int* lengths, int rows,
                                             const float* partial, const float* lse, __half* out) {
  const int slot = blockIdx.x;
  if (lengths[slot / G] <= 0) {
    for (int d = threadIdx.x; d < D; d += kMergeThreads) out[slot * D + d] = __ushort_as_half(0);
    return;
  }

  const int active = active_splits(total_tokens(lengths, rows));
  const int own = threadIdx.x;
  if (own < active) {
    m.split_max[own] = lse[workspace_row<G>(own, slot) * 2];
    m.split_sum[own] = lse[workspace_row<G>(own, slot) * 2 + 1];
  }
  __syncthreads();
  float greatest = paged::kNothing;
  for (int s = 0; s < active; ++s) {
    if (m.split_max[s] <= paged::kSeenNothing) continue;
    greatest = paged::max_of(greatest, m.split_max[s]);
  }
  if (own < active) m.weight[own] = paged::weight_of(m.split_max[own], greatest);
  __syncthreads();
  float sum = 0.0f;
  for (int s = 0; s < active; ++s) {
    if (m.split_max[s] <= paged::kSeenNothing) continue;
    sum = __fmaf_rn(m.weight[s], m.split_sum[s], sum);
  }
  const float inverse = 1.0f / sum;
  for (int d = threadIdx.x; d < D; d += kMergeThreads) {
    float acc = 0.0f;
    for (int s = 0; s < active; ++s) {
      if (m.split_max[s] <= paged::kSeenNothing) continue;
      acc = __fmaf_rn(m.weight[s] * inverse, partial[workspace_row<G>(s, slot) * D + d], acc);
    }
    out[slot * D + d] = __float2half_rn(acc);
  }
}

}  // namespace grouped::staged
