// scalar, variant `pv_unroll4`, parent `control`: the V loads of four tokens are issued before their four
// fmas.
//
//   scalar_pv_unroll4_partitions<G, D>   grid (256, G), block 256, no dynamic shared memory
//   scalar_pv_unroll4_reduce<G, D>       grid (G), block 256, no dynamic shared memory
#include <cuda_fp16.h>

#include "pv_schedules.cuh"
#include "../bytewise/reduce.cuh"

// q f16 [1, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [1];
// partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_pv_unroll4_partitions(const __half* q, const unsigned char* k, const unsigned char* v,
                                 const int* table, const int* lengths, int page, long long k_page_stride,
                                 long long k_token_stride, long long v_page_stride, long long v_token_stride,
                                 float scale, float k_scale, float v_scale, float* partial, float* maximum,
                                 float* sums) {
  __shared__ scalar::PartitionMemory<1> memory;
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, 1, page, scale, k_scale, v_scale};
  scalar::run_head<D, scalar::PvUnroll4>(memory, in, partial, maximum, sums);
}

// out f16 [1, G, D].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_pv_unroll4_reduce(const int* lengths, const float* partial, const float* maximum, const float* sums,
                             __half* out) {
  __shared__ scalar::ReduceMemory memory;
  scalar::reduce_partitions<G, D>(memory, lengths, partial, maximum, sums, out);
}
