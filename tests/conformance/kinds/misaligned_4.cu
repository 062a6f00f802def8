__global__ void good(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t]; }
__global__ void bad(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t];
  if (t == 0) y[t] += *(const float*)((const char*)x + 2) * 0; }
