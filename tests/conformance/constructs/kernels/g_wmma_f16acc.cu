#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void K(const __half* x, __half* y, int n) { wmma::fragment<wmma::matrix_a,16,16,16,__half,wmma::row_major> a; wmma::fragment<wmma::matrix_b,16,16,16,__half,wmma::col_major> b; wmma::fragment<wmma::accumulator,16,16,16,__half> acc; wmma::fill_fragment(acc, __float2half(0.0f)); wmma::load_matrix_sync(a, x, 16); wmma::load_matrix_sync(b, x, 16); wmma::mma_sync(acc, a, b, acc); wmma::store_matrix_sync(y, acc, 16, wmma::mem_row_major); }
