extern "C" __global__ void K(const float* x, int* y, int n) { int i = threadIdx.x; if (i == 0) for (int q = 0; q < 1; ++q) y[q] = (int)0; __syncthreads(); atomicAdd_system(y, 1); }
