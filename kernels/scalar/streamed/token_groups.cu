// scalar, variant `token_groups`, parent `compact_page_map`: 16 threads score a token, and all warps of a block sum V.
// K and V stream through shared memory undecoded; each warp has a pipeline of its own.
//
//   scalar_token_groups_partitions<G, D>   grid (256), block 128, dynamic shared memory sizeof(GroupMemory)
//   scalar_token_groups_reduce<G, D>       grid (G, D / 32), block 256, no dynamic shared memory
#include <cuda_fp16.h>

#include "column_reduce.cuh"
#include "token_schedules.cuh"

// q f16 [1, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [1];
// partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kGroupThreads, 2)
    scalar_token_groups_partitions(const __half* q, const unsigned char* k, const unsigned char* v,
                                   const int* table, const int* lengths, int page, long long k_page_stride,
                                   long long k_token_stride, long long v_page_stride, long long v_token_stride,
                                   float scale, float k_scale, float v_scale, float* partial, float* maximum,
                                   float* sums) {
  using Memory = scalar::GroupMemory<G, D, scalar::ScheduleAsNeeded>;
  static_assert(sizeof(Memory) == 4096 * G + 49152 + 1024 + 64 * G + 2 * G * D, "what the launch reserves");
  extern __shared__ uint4 reserved[];
  Memory& memory = *reinterpret_cast<Memory*>(reserved);
  const scalar::Partition partition = scalar::partition_of(blockIdx.x, lengths[0]);
  if (partition.tokens == 0) return;
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, 1, page, scale, k_scale, v_scale};
  scalar::run_token_groups<scalar::ScheduleAsNeeded, G, D>(memory, in, partition, partial, maximum, sums);
}

// out f16 [1, G, D].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_token_groups_reduce(const int* lengths, const float* partial, const float* maximum, const float* sums,
                               __half* out) {
  __shared__ scalar::ColumnMemory memory;
  scalar::reduce_columns<scalar::ChainAsNeeded, G, D>(memory, lengths, partial, maximum, sums, out);
}
