#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void K(const float* x, float* y, int n) { wmma::fragment<wmma::matrix_a,16,16,8,wmma::precision::tf32,wmma::row_major> a; (void)a; y[threadIdx.x] = x[threadIdx.x]; }
