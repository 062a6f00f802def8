// grouped, variant `n64`, parent `ordered_qk_pv`: two tiles of 32 tokens are loaded as one panel and go
// through each step in their order, between the same barriers. The last panel of a split may hold one tile.
//
//   grouped_n64_splits<G, D, Page>   grid (80, 1), block 256, dynamic shared memory
//                                    split_memory_bytes<D, ceil(8 * G / 16), 8, 2>:
//                                    136,768 (G=6, D=256), 55,680 (G=3, D=64)
//   grouped_n64_merge<G, D>          grid (rows * G), block 128, no dynamic shared memory
#include <cuda_fp16.h>

#include "../staged/merge.cuh"
#include "../staged/splits.cuh"

namespace grouped::staged {

template <int G, int Page>
struct N64 : OrderedQkPv<G, Page> {
  static constexpr int panel_tiles = 2;
};

}  // namespace grouped::staged

using grouped::staged::N64;

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(N64<G, Page>::threads)
    grouped_n64_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                const int* table, const int* lengths, int rows, int page,
                                long long k_page_stride, long long k_token_stride, long long v_page_stride,
                                long long v_token_stride, float scale, float k_scale, float v_scale,
                                float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  grouped::staged::run_split<G, D, N64<G, Page>>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(grouped::staged::kMergeThreads)
    grouped_n64_merge(const int* lengths, int rows, const float* partial, const float* lse,
                               __half* out) {
  __shared__ grouped::staged::MergeMemory memory;
  grouped::staged::merge_splits<G, D>(memory, lengths, rows, partial, lse, out);
}
