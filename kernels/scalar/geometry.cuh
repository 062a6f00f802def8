// How `scalar` cuts its work: partitions of 1,024 tokens, a block of 8 warps for each.
#pragma once
#include "../paged/inputs.cuh"

namespace scalar {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPartitions = 256;  // no more than threads: the reducer's thread i holds partition i
constexpr int kPartitionTokens = 1024;
constexpr float kNoMaximum = -1e20f;  // 0xE0AD78EC: below every score

// Partitions that exist for a length. There is none for a length of 0 or less.
__device__ __forceinline__ int active_partitions(int length) {
  return length > 0 ? (length + kPartitionTokens - 1) / kPartitionTokens : 0;
}

// The tokens [first, first + tokens) of one partition; none past the length.
struct Partition {
  int index;
  int first;
  int tokens;
};

__device__ __forceinline__ Partition partition_of(int index, int length) {
  const int first = index * kPartitionTokens;
  if (first >= length) return {index, first, 0};  // so is every partition of a length of 0 or less
  const int left = length - first;                // cannot overflow any more
  return {index, first, left < kPartitionTokens ? left : kPartitionTokens};
}

// partial f32 [1, G, 256, D]; maximum and sums f32 [1, G, 256].
__device__ __forceinline__ int workspace_row(int head, int partition) {
  return head * kPartitions + partition;
}

}  // namespace scalar
