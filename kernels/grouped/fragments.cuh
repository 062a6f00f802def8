// The tensor core's fragments, and what is done with them element by element.
//
// Elements of two fragments of one type with the same index are the same matrix element: the type fixes the
// layout. So nothing here need know it.
#pragma once
#include <cuda_fp16.h>
#include <mma.h>

namespace grouped {

namespace wmma = nvcuda::wmma;
using RowFragment = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using ValueFragment = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// sum += t, compensated.
template <class Sum>
__device__ __forceinline__ void kahan_add(Sum& sum, Sum& compensation, const Sum& t) {
#pragma unroll
  for (int i = 0; i < t.num_elements; ++i) {
    const float y = t.x[i] - compensation.x[i];
    const float next = sum.x[i] + y;
    compensation.x[i] = (next - sum.x[i]) - y;
    sum.x[i] = next;
  }
}

// sum += t in FP64, and its one rounding in the end: what `fp64_sum` does in place of the contract's sum.
template <class Sum>
__device__ __forceinline__ void fp64_add(double (&sum)[Sum::num_elements], const Sum& t) {
#pragma unroll
  for (int i = 0; i < t.num_elements; ++i) sum[i] += static_cast<double>(t.x[i]);
}

template <class Sum>
__device__ __forceinline__ void round_sum(Sum& rounded, const double (&sum)[Sum::num_elements]) {
#pragma unroll
  for (int i = 0; i < rounded.num_elements; ++i) rounded.x[i] = static_cast<float>(sum[i]);
}

// out = fma(out, rescale, tile). A row that sees nothing has rescale 1 and tile +0, which leaves all but the
// sign of a zero, and that is lost at the end of the split.
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

}  // namespace grouped
