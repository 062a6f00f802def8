__global__ void good(const float* x, int* y, int n) { int t = threadIdx.x; y[t] = (int)x[t]; }
__global__ void bad(const float* x, int* y, int n) { int t = threadIdx.x;
  y[t] = (int)(t ? x[t] : x[t] / 0.0f * 0.0f); }
