__global__ void good(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] / 2; }
__global__ void bad(const int* x, int* y, int n) { int t = threadIdx.x; y[t] = x[t] / (t == 5 ? x[t] - x[5] : 2); }
