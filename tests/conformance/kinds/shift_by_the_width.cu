__global__ void good(const unsigned* x, unsigned* y, int n) { int t = threadIdx.x; y[t] = 1u << t; }
__global__ void bad(const unsigned* x, unsigned* y, int n) { int t = threadIdx.x; y[t] = (1u << (t + 1)) >> 1; }
