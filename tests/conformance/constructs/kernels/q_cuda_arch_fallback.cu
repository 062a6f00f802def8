__device__ float f(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return v * 2;
#else
  return v * 3;
#endif
}
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = f(x[i]); }
