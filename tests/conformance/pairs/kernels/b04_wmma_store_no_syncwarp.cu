#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
template <bool Bug> __device__ void f(const __half* a, const __half* b, float* y) {
  __shared__ float out[16][16]; int lane = threadIdx.x;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc; wmma::fill_fragment(acc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(&out[0][0], acc, 16, wmma::mem_row_major);
  if (!Bug) __syncwarp();
  for (int z = lane; z < 256; z += 32) y[z] = out[z / 16][z % 16] * 2.0f;
}
extern "C" __global__ void good(const __half* a, const __half* b, float* y) { f<false>(a, b, y); }
extern "C" __global__ void bad(const __half* a, const __half* b, float* y) { f<true>(a, b, y); }
