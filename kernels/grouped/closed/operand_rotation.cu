// grouped, variant `operand_rotation`, parent `visible_tile`: K is the left operand of QK and q the right
// one; the transposed score is stored by columns.
//
//   grouped_operand_rotation_splits<G, D, Page>   grid (80, 1), block 256, dynamic shared memory
//                                                 split_memory_bytes<D, ceil(8 * G / 16), 8>:
//                                                 87,616 (G=6, D=256), 36,224 (G=3, D=64)
//   grouped_operand_rotation_merge<G, D>          grid (rows * G), block 128, no dynamic shared memory
#include <cuda_fp16.h>

#include "../staged/merge.cuh"
#include "../staged/splits.cuh"

namespace grouped::staged {

// One product of QK with K as the left operand: k q^T, stored by columns.
struct KeysLeft {
  static constexpr int slots = 16;
  static constexpr int tokens = 16;
  static constexpr wmma::layout_t order = wmma::mem_col_major;
  using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
  using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
  using Score = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

  template <class Memory>
  __device__ __forceinline__ static const __half* left(const Memory& m, int, int token) {
    return m.k[token];
  }

  template <class Memory>
  __device__ __forceinline__ static const __half* right(const Memory& m, int slot, int) {
    return m.q[slot];
  }
};

template <int G, int Page>
struct OperandRotation : VisibleTile<G, Page> {
  using Qk = KeysLeft;
};

}  // namespace grouped::staged

using grouped::staged::OperandRotation;

// q f16 [rows, G, D]; k, v e4m3 [pages, page, 1, D], strides in bytes; table i32 [n]; lengths i32 [rows];
// partial f32 [80, 8, G, D]; lse f32 [80, 8, G, 2].
template <int G, int D, int Page>
__global__ void __launch_bounds__(OperandRotation<G, Page>::threads)
    grouped_operand_rotation_splits(const __half* q, const unsigned char* k, const unsigned char* v,
                                const int* table, const int* lengths, int rows, int page,
                                long long k_page_stride, long long k_token_stride, long long v_page_stride,
                                long long v_token_stride, float scale, float k_scale, float v_scale,
                                float* partial, float* lse) {
  const paged::Storage keys = {k, k_page_stride, k_token_stride};
  const paged::Storage values = {v, v_page_stride, v_token_stride};
  const paged::Inputs in = {q, keys, values, table, lengths, rows, page, scale, k_scale, v_scale};
  grouped::staged::run_split<G, D, OperandRotation<G, Page>>(in, partial, lse);
}

// out f16 [rows, G, D].
template <int G, int D>
__global__ void __launch_bounds__(grouped::staged::kMergeThreads)
    grouped_operand_rotation_merge(const int* lengths, int rows, const float* partial, const float* lse,
                               __half* out) {
  __shared__ grouped::staged::MergeMemory memory;
  grouped::staged::merge_splits<G, D>(memory, lengths, rows, partial, lse, out);
}
