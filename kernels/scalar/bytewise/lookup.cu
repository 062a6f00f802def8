// scalar, variant `lookup`, parent `shared_kv`: e4m3 is decoded by a 256-entry table in shared memory.
//
//   scalar_lookup_partitions<G, D>   grid (256), block 256, no dynamic shared memory
//   scalar_lookup_reduce<G, D>       grid (G), block 256, no dynamic shared memory
#include <cuda_fp16.h>

#include "partition.cuh"
#include "reduce.cuh"

// q f16 [1, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [1];
// partial f32 [1, G, 256, D]; maximum, sums f32 [1, G, 256].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_lookup_partitions(const __half* q, const unsigned char* k, const unsigned char* v,
                             const int* table, const int* lengths, int page, long long k_page_stride,
                             long long k_token_stride, long long v_page_stride, long long v_token_stride,
                             float scale, float k_scale, float v_scale, float* partial, float* maximum,
                             float* sums) {
  __shared__ scalar::PartitionMemory<G> memory;
  __shared__ scalar::CodeTable codes;
  const scalar::Partition partition = scalar::partition_of(blockIdx.x, lengths[0]);
  if (partition.tokens == 0) return;
  scalar::fill_codes(codes);
  __syncthreads();
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, 1, page, scale, k_scale, v_scale};
  const scalar::PagesByTable pages = {table, page, partition.first};
  scalar::run_partition<G, D>(memory, in, partition, scalar::DecodeByLookup{codes}, pages, partial, maximum,
                              sums);
}

// out f16 [1, G, D].
template <int G, int D>
__global__ void __launch_bounds__(scalar::kThreads)
    scalar_lookup_reduce(const int* lengths, const float* partial, const float* maximum, const float* sums,
                         __half* out) {
  __shared__ scalar::ReduceMemory memory;
  scalar::reduce_partitions<G, D>(memory, lengths, partial, maximum, sums, out);
}
