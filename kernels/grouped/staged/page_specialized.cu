// grouped, variant `page_specialized`, parent `shared_kv`: the page size is a compile-time constant, so that
// finding a token costs no division. Page is the argument `page`, or 0 for a size that is not compiled in.
//
//   grouped_page_specialized_splits<G, D, Page>   grid (80, 1), block 256, dynamic shared memory
//                                                 split_memory_bytes<D, ceil(8 * G / 16), 8>:
//                                                 87,616 (G=6, D=256), 36,224 (G=3, D=64)
//   grouped_page_specialized_merge<G, D>          grid (rows * G), block 128, no dynamic shared memory
#include <cuda_fp16.h>

#include "merge.cuh"
#include "splits.cuh"

using grouped::staged::PageSpecialized;

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(PageSpecialized<G, Page>::threads)
    grouped_page_specialized_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                    const int* table, const int* lengths, int rows, int page,
                                    long long k_page_stride, long long k_token_stride,
                                    long long v_page_stride, long long v_token_stride, float scale,
                                    float k_scale, float v_scale, float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  grouped::staged::run_split<G, D, PageSpecialized<G, Page>>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(grouped::staged::kMergeThreads)
    grouped_page_specialized_merge(const int* lengths, int rows, const float* partial, const float* lse,
                                   __half* out) {
  __shared__ grouped::staged::MergeMemory memory;
  grouped::staged::merge_splits<G, D>(memory, lengths, rows, partial, lse, out);
}
