// grouped, variant `fp64_sum`, parent `visible_tile`: the K16 products of QK are summed in FP64 and rounded to
// f32 once, instead of the compensated sum. So its bytes differ from its parent's and from the contract's.
//
//   grouped_fp64_sum_splits<G, D, Page>   grid (80, 1), block 256, dynamic shared memory
//                                         split_memory_bytes<D, ceil(8 * G / 16), 8>:
//                                         87,616 (G=6, D=256), 36,224 (G=3, D=64)
//   grouped_fp64_sum_merge<G, D>          grid (rows * G), block 128, no dynamic shared memory
#include <cuda_fp16.h>

#include "../staged/merge.cuh"
#include "../staged/splits.cuh"

namespace grouped::staged {

// The sum of products in FP64, rounded once at the end.
template <class Score>
class Fp64Total {
 public:
  __device__ __forceinline__ void add(const Score& t) {
#pragma unroll
    for (int i = 0; i < t.num_elements; ++i) total_[i] += static_cast<double>(t.x[i]);
  }

  __device__ __forceinline__ Score sum() const {
    Score rounded;
#pragma unroll
    for (int i = 0; i < rounded.num_elements; ++i) rounded.x[i] = static_cast<float>(total_[i]);
    return rounded;
  }

 private:
  double total_[Score::num_elements] = {};
};

template <int G, int Page>
struct Fp64Sum : VisibleTile<G, Page> {
  template <class Score>
  using Sum = Fp64Total<Score>;
};

}  // namespace grouped::staged

using grouped::staged::Fp64Sum;

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(Fp64Sum<G, Page>::threads)
    grouped_fp64_sum_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                const int* table, const int* lengths, int rows, int page,
                                long long k_page_stride, long long k_token_stride, long long v_page_stride,
                                long long v_token_stride, float scale, float k_scale, float v_scale,
                                float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  grouped::staged::run_split<G, D, Fp64Sum<G, Page>>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(grouped::staged::kMergeThreads)
    grouped_fp64_sum_merge(const int* lengths, int rows, const float* partial, const float* lse,
                               __half* out) {
  __shared__ grouped::staged::MergeMemory memory;
  grouped::staged::merge_splits<G, D>(memory, lengths, rows, partial, lse, out);
}
