__global__ void good(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] >> 1; }
__global__ void bad(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] >> (1 - x[t] * (t == 3)); }
