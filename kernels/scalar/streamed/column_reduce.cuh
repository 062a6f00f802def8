// The reducer in blocks of 32 dimensions of a head. A block issues all its loads at once, and the chain over ascending
// partitions then runs from shared memory.
#pragma once
#include "../trees.cuh"

namespace scalar {

constexpr int kColumns = 32;

struct __align__(16) ColumnMemory {
  float partial[kPartitions][kColumns];
  float weight[kPartitions];
  WarpValues maximum;
  WarpValues sum;
};

// The chain of one column, 16 links at a time; each group waits for its operands.
struct ChainAsNeeded {
  static __device__ __forceinline__ float add(const ColumnMemory& m, int lane, int active) {
    float acc = 0.0f;
#pragma unroll 16
    for (int i = 0; i < active; ++i) acc = __fmaf_rn(m.weight[i], m.partial[i][lane], acc);
    return acc;
  }
};

// While 16 links are added, the operands of the next 16 are loaded from shared memory.
struct ChainOneAhead {
  static __device__ __forceinline__ float add(const ColumnMemory& m, int lane, int active) {
    float acc = 0.0f;
    Links links[2];
    load(links[0], m, lane, 0);
    int i = 0;
    for (; i + 2 * kLinks <= active; i += 2 * kLinks) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int next = i + (half + 1) * kLinks;  // past the last partition the value is not added
        load(links[1 - half], m, lane, next < kPartitions ? next : 0);
#pragma unroll
        for (int j = 0; j < kLinks; ++j) acc = __fmaf_rn(links[half].weight[j], links[half].partial[j], acc);
      }
    }
    for (; i < active; ++i) acc = __fmaf_rn(m.weight[i], m.partial[i][lane], acc);
    return acc;
  }

 private:
  static constexpr int kLinks = 16;
  struct Links {
    float weight[kLinks];
    float partial[kLinks];
  };

  static __device__ __forceinline__ void load(Links& to, const ColumnMemory& m, int lane, int first) {
#pragma unroll
    for (int j = 0; j < kLinks; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(&m.weight[first + j]);
      to.weight[j] = four.x;
      to.weight[j + 1] = four.y;
      to.weight[j + 2] = four.z;
      to.weight[j + 3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < kLinks; ++j) to.partial[j] = m.partial[first + j][lane];
  }
};

// Block (head, dimensions / 32) of 256 threads. out f16 [1, G, D]; partial f32 [1, G, 256, D]; maximum, sums f32
// [1, G, 256]. A length of 0 or less gives zeros without reading the workspace.
template <class Chain, int G, int D>
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
  const float acc = Chain::add(m, lane, active);
  out[head * D + d] = __float2half_rn(acc * (1.0f / sum_of_warps(m.sum)));
}

}  // namespace scalar
