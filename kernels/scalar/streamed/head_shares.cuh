// The heads of few partitions, spread over blocks. Each block then reads all of K and V of its partition, and
// multiprocessors that would be idle take a share.
#pragma once
#include "token_schedules.cuh"

namespace scalar {

// Blocks of a launch: two for each of the 132 multiprocessors of the GPU on which this was tuned, and at least one for
// each partition. Any number gives the same bytes.
constexpr int kShareBlocks = 264;

// Blocks for each partition where there are few.
template <int G>
constexpr int kShares = G % 3 == 0 ? 3 : G % 2 == 0 ? 2 : 1;

// Block b of kShareBlocks. `reserved`: sizeof(GroupMemory<G, D, Schedule>) bytes, aligned to 16. partial f32
// [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <class Schedule, int G, int D>
__device__ __forceinline__ void run_shared_out(void* reserved, const paged::Inputs& in, float* partial, float* maximum,
                                               float* sums) {
  static_assert(kShareBlocks >= kPartitions, "every partition has a block");
  constexpr int shares = kShares<G>;
  constexpr int heads = G / shares;
  const int length = in.lengths[0];
  if (shares > 1 && active_partitions(length) <= kShareBlocks / shares) {
    const Partition partition = partition_of(blockIdx.x / shares, length);
    if (partition.tokens == 0) return;
    const int first = blockIdx.x % shares * heads;
    paged::Inputs own = in;
    own.q += first * D;
    auto& memory = *static_cast<GroupMemory<heads, D, Schedule>*>(reserved);
    run_token_groups<Schedule, heads, D>(memory, own, partition, partial + workspace_row(first, 0) * D,
                                         maximum + workspace_row(first, 0), sums + workspace_row(first, 0));
  } else {
    const Partition partition = partition_of(blockIdx.x, length);
    if (partition.tokens == 0) return;
    auto& memory = *static_cast<GroupMemory<G, D, Schedule>*>(reserved);
    run_token_groups<Schedule, G, D>(memory, in, partition, partial, maximum, sums);
  }
}

}  // namespace scalar
