extern "C" __global__ void K(const float* x, double* y, int n) { int i = threadIdx.x; if (i == 0) for (int q = 0; q < 1; ++q) y[q] = (double)0; __syncthreads(); atomicAdd(y, 1.0 + 0*x[i]); }
