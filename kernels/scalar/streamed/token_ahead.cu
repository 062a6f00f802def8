// scalar, variant `token_ahead`, parent `token_groups`: the operands of a step are loaded from shared memory during
// the step before. A stage has twice the tokens, q is loaded ahead of the page table, and the heads of few partitions
// are spread over blocks.
//
//   scalar_token_ahead_partitions<G, D>   grid (264), block 128, dynamic shared memory sizeof(GroupMemory)
//   scalar_token_ahead_reduce<G, D>       grid (G, D / 32), block 256, no dynamic shared memory
#include <cuda_fp16.h>

#include "column_reduce.cuh"
#include "head_shares.cuh"

// q f16 [1, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [1];
// partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kGroupThreads, 2)
    scalar_token_ahead_partitions(const __half* q, const unsigned char* k, const unsigned char* v, const int* table,
                                  const int* lengths, int page, long long k_page_stride, long long k_token_stride,
                                  long long v_page_stride, long long v_token_stride, float scale, float k_scale,
                                  float v_scale, float* partial, float* maximum, float* sums) {
  using Schedule = scalar::ScheduleOneAhead<1>;
  constexpr int stages = D == 256 ? 65536 : 49152;
  static_assert(sizeof(scalar::GroupMemory<G, D, Schedule>) == 4096 * G + stages + 1024 + 64 * G + 2 * G * D,
                "what the launch reserves");
  extern __shared__ uint4 reserved[];
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, 1, page, scale, k_scale, v_scale};
  scalar::run_shared_out<Schedule, G, D>(reserved, in, partial, maximum, sums);
}

// out f16 [1, G, D].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_token_ahead_reduce(const int* lengths, const float* partial, const float* maximum, const float* sums,
                               __half* out) {
  __shared__ scalar::ColumnMemory memory;
  scalar::reduce_columns<scalar::ChainOneAhead, G, D>(memory, lengths, partial, maximum, sums, out);
}
