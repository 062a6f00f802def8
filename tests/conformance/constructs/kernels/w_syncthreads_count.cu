extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; y[i] = x[i] + __syncthreads_count(i < 10) - 10 + __syncthreads_or(i == 3) - 1; }
