extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; if (i == 0) for (int q = 0; q < 1; ++q) y[q] = (float)0; __syncthreads(); atomicAdd(y, 1.0f + 0*x[i]); }
