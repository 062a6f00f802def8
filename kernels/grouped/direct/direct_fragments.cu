// grouped, variant `direct_fragments`, parent `visible_tile`: e4m3 bytes are decoded straight into tensor-core
// registers; scores, compensation and numerator stay in registers too. One block serves one row tile.
//
//   grouped_direct_fragments_splits<G, D, Page>   grid (80, row tiles), block 128, dynamic shared memory
//                                                 direct::chunk_memory_bytes<D>:
//                                                 113,408 (G=6, D=256), 39,680 (G=3, D=64)
//   grouped_direct_fragments_merge<G, D>          grid (rows * G), block D, no dynamic shared memory
//
// On sm_90 one exact step adds all 16 products of a K16 product, so their order is free, and the k values of QK are
// permuted within their 16. Where a step is shorter, they keep their order (operands.cuh). The bytes are the parent's
// on every architecture; only sm_90 gains speed.
#include <cuda_fp16.h>

#include "merge.cuh"
#include "direct_fragments.cuh"

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(grouped::direct::kThreads, 2)
    grouped_direct_fragments_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                    const int* table, const int* lengths, int rows, int page,
                                    long long k_page_stride, long long k_token_stride, long long v_page_stride,
                                    long long v_token_stride, float scale, float k_scale, float v_scale,
                                    float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  using grouped::direct::DirectFragments;
  grouped::direct::run_split<DirectFragments<G, D, Page>, G, D>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(D)
    grouped_direct_fragments_merge(const int* lengths, int rows, const float* partial, const float* lse,
                                   __half* out) {
  __shared__ grouped::direct::MergeMemory memory;
  grouped::direct::merge_splits<G, D, D>(memory, lengths, rows, partial, lse, out);
}
