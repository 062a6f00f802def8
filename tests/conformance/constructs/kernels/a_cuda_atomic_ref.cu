#include <cuda/atomic>
extern "C" __global__ void K(const float* x, int* y, int n) { int i = threadIdx.x; if (i == 0) for (int q = 0; q < 1; ++q) y[q] = (int)0; __syncthreads(); cuda::atomic_ref<int, cuda::thread_scope_device> r(*y); r.fetch_add(1); }
