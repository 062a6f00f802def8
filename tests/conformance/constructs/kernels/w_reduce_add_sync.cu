extern "C" __global__ void K(const int* x, int* y, int n) { int i = threadIdx.x, lane = i & 31; y[i] = __reduce_add_sync(~0u, x[i]); }
