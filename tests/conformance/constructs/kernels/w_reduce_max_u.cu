extern "C" __global__ void K(const unsigned int* x, unsigned int* y, int n) { int i = threadIdx.x, lane = i & 31; y[i] = __reduce_max_sync(~0u, x[i]); }
