// The tensor core's fragments, and arithmetic on them element by element.
//
// The type of a fragment fixes its layout: elements of two fragments of one type with the same index are the same
// matrix element. So nothing here needs to know the layout.
#pragma once
#include <cuda_fp16.h>
#include <mma.h>

namespace grouped::staged {

namespace wmma = nvcuda::wmma;
using RowFragment = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using ValueFragment = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// The compensated sum of products.
template <class Score>
class KahanSum {
 public:
  __device__ __forceinline__ KahanSum() {
    wmma::fill_fragment(sum_, 0.0f);
    wmma::fill_fragment(compensation_, 0.0f);
  }

  __device__ __forceinline__ void add(const Score& t) {
#pragma unroll
    for (int i = 0; i < t.num_elements; ++i) {
      const float y = t.x[i] - compensation_.x[i];
      const float next = sum_.x[i] + y;
      compensation_.x[i] = (next - sum_.x[i]) - y;
      sum_.x[i] = next;
    }
  }

  __device__ __forceinline__ const Score& sum() const { return sum_; }

 private:
  Score sum_;
  Score compensation_;
};

// out = fma(out, rescale, tile). A row that sees nothing has rescale 1 and tile +0, which can only change the sign of a
// zero, and the end of the split drops that.
__device__ __forceinline__ void accumulate(Accumulator& out, const Accumulator& rescale,
                                           const Accumulator& tile) {
#pragma unroll
  for (int i = 0; i < out.num_elements; ++i) out.x[i] = __fmaf_rn(out.x[i], rescale.x[i], tile.x[i]);
}

// V * 2^-11, exact in f16 for every finite e4m3.
__device__ __forceinline__ void shrink(ValueFragment& values) {
#pragma unroll
  for (int i = 0; i < values.num_elements; ++i) {
    values.x[i] = __float2half_rn(__half2float(values.x[i]) * 0x1p-11f);
  }
}

}  // namespace grouped::staged
