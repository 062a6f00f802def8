// grouped, variant `shared_kv`, parent `vector_loads`: one block of a split serves all rows and heads, so
// each byte of K and V is read from global memory once.
//
//   grouped_shared_kv_splits<G, D>   grid (80, 1), block 256, dynamic shared memory
//                                    split_memory_bytes<D, ceil(8 * G / 16), 8>:
//                                    87,616 (G=6, D=256), 36,224 (G=3, D=64)
//   grouped_shared_kv_merge<G, D>    grid (rows * G), block 128, no dynamic shared memory
#include <cuda_fp16.h>

#include "merge.cuh"
#include "splits.cuh"

using grouped::staged::SharedKv;

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D>
__global__ void __launch_bounds__(SharedKv<G>::threads)
    grouped_shared_kv_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                             const int* table, const int* lengths, int rows, int page,
                             long long k_page_stride, long long k_token_stride, long long v_page_stride,
                             long long v_token_stride, float scale, float k_scale, float v_scale,
                             float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  grouped::staged::run_split<G, D, SharedKv<G>>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(grouped::staged::kMergeThreads)
    grouped_shared_kv_merge(const int* lengths, int rows, const float* partial, const float* lse,
                            __half* out) {
  __shared__ grouped::staged::MergeMemory memory;
  grouped::staged::merge_splits<G, D>(memory, lengths, rows, partial, lse, out);
}
