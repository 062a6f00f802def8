// Tensor-core products through wmma and through mma.sync, f16 operands and f32 accumulators.
#include <mma.h>

#include "audit_mma.h"

using namespace nvcuda;

// A[M,16] row- or column-major, B[16,N] likewise, C and D[M,N]; d = scale * a b + c
template <int M, int N, typename AOrder, typename BOrder>
__global__ void product(const __half* a, const __half* b, const float* c, float* d, int a_stride, int b_stride) {
  wmma::fragment<wmma::matrix_a, M, N, 16, __half, AOrder> left;
  wmma::fragment<wmma::matrix_b, M, N, 16, __half, BOrder> right;
  wmma::fragment<wmma::accumulator, M, N, 16, float> sum;
  wmma::load_matrix_sync(left, a, a_stride);
  wmma::load_matrix_sync(right, b, b_stride);
  wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
  for (int i = 0; i < left.num_elements; ++i) left.x[i] = __hmul(left.x[i], __float2half(2.0f));
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(d, sum, M, wmma::mem_col_major);
}

using Row = wmma::row_major;
using Col = wmma::col_major;

// Each warp of the block: A[16,16] B[16,8] + C[16,8], all row-major, by the PTX ISA's layout.
__global__ void instruction(const __half* a, const __half* b, const float* c, float* d) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  a += warp * 256;
  b += warp * 128;
  c += warp * 128;
  d += warp * 128;
  const auto two = [](__half low, __half high) {
    return static_cast<unsigned>(__half_as_ushort(low)) | static_cast<unsigned>(__half_as_ushort(high)) << 16;
  };
  unsigned left[4], right[2];
  float sum[4];
  for (int i = 0; i < 4; ++i) {
    const __half* row = a + (g + 8 * (i % 2)) * 16 + 2 * t + 8 * (i / 2);
    left[i] = two(row[0], row[1]);
  }
  for (int i = 0; i < 2; ++i) right[i] = two(b[(2 * t + 8 * i) * 8 + g], b[(2 * t + 8 * i + 1) * 8 + g]);
  for (int i = 0; i < 4; ++i) sum[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  audit::mma_m16n8k16(sum, left, right, sum);
  for (int i = 0; i < 4; ++i) d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
}

// Half a warp arrives, or a warp of 16 threads.
__global__ void diverged(float* d) {
  unsigned left[4] = {}, right[2] = {};
  float sum[4] = {};
  if (threadIdx.x < 16) audit::mma_m16n8k16(sum, left, right, sum);
  d[threadIdx.x] = sum[0];
}
