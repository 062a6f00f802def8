__device__ float f(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return v * 2.5f;   // the path of every recent GPU: wrong
#else
  return v * 2.0f;   // the path of old ones
#endif
}
extern "C" __global__ void good(const float* x, float* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[i] * 2.0f; }
extern "C" __global__ void bad(const float* x, float* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = f(x[i]); }
