__global__ void good(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t]; }
__global__ void bad(const float* x, float* y, int n) { int t = threadIdx.x;
#if __CUDA_ARCH__ >= 900
  y[t] = x[t] + 1;
#elif __CUDA_ARCH__ >= 800
  y[t] = x[t];
#else
  y[t] = x[t];
#endif
}
