// The merge of the splits, with all loads of a thread in flight at once: one thread for each dimension of a row and
// head.
//
// The contract skips a split that the row does not see. Here its sum is added, which is +0 and changes nothing; its
// partial is loaded but not added, since acc may be -0. Splits come in groups, and a group without an active split is
// left out, so that the chains are no longer than they must be.
#pragma once
#include "block.cuh"

namespace grouped::direct {

constexpr int kMergeGroup = 16;

// One value for each split of the groups that are used. An inactive split counts as one that the row does not see.
struct MergeMemory {
  float split_max[kMaxSplits];
  float split_sum[kMaxSplits];
  float weight[kMaxSplits];
  float factor[kMaxSplits];  // weight / sum; negative where the row sees nothing of the split
};

// out f16 [rows, G, D]; partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2] = (max, sum). A row of length 0 is
// zeros, and its workspace is not read. Block (slot, part) serves Threads of the dimensions.
template <int G, int D, int Threads>
__device__ __forceinline__ void merge_splits(MergeMemory& m, const int* row_lengths, int rows, const float* partial,
                                             const float* lse, __half* out) {
  static_assert(kMaxSplits % kMergeGroup == 0, "whole groups");
  const int slot = blockIdx.x;
  const int d = blockIdx.y * Threads + threadIdx.x;
  const Lengths lengths = load_lengths(row_lengths, rows);
  if (row_lengths[slot / G] <= 0) {
    out[slot * D + d] = __ushort_as_half(0);
    return;
  }
  const int active = active_splits(total_tokens(lengths));
  for (int own = threadIdx.x; own < kMaxSplits; own += Threads) {
    const bool exists = own < active;
    m.split_max[own] = exists ? lse[workspace_row<G>(own, slot) * 2] : paged::kNothing;
    m.split_sum[own] = exists ? lse[workspace_row<G>(own, slot) * 2 + 1] : 0.0f;
  }
  float numerator[kMaxSplits];
#pragma unroll
  for (int s = 0; s < kMaxSplits; ++s) {
    numerator[s] = s < active ? partial[workspace_row<G>(s, slot) * D + d] : 0.0f;
  }
  __syncthreads();
  float greatest = paged::kNothing;
#pragma unroll 1
  for (int first = 0; first < active; first += kMergeGroup) {
#pragma unroll
    for (int s = 0; s < kMergeGroup; ++s) greatest = paged::max_of(greatest, m.split_max[first + s]);
  }
  for (int own = threadIdx.x; own < kMaxSplits; own += Threads) {
    m.weight[own] = paged::weight_of(m.split_max[own], greatest);
  }
  __syncthreads();
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < active; first += kMergeGroup) {
#pragma unroll
    for (int s = 0; s < kMergeGroup; ++s) sum = __fmaf_rn(m.weight[first + s], m.split_sum[first + s], sum);
  }
  const float inverse = 1.0f / sum;
  for (int own = threadIdx.x; own < kMaxSplits; own += Threads) {
    m.factor[own] = m.split_max[own] > paged::kSeenNothing ? m.weight[own] * inverse : -1.0f;
  }
  __syncthreads();
  float acc = 0.0f;
#pragma unroll
  for (int first = 0; first < kMaxSplits; first += kMergeGroup) {
    if (first >= active) break;
#pragma unroll
    for (int s = first; s < first + kMergeGroup; ++s) {
      const float factor = m.factor[s];
      if (factor >= 0.0f) acc = __fmaf_rn(factor, numerator[s], acc);
    }
  }
  out[slot * D + d] = __float2half_rn(acc);
}

}  // namespace grouped::direct
