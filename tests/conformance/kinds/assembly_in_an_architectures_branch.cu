__global__ void good(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t]; }
#define ARCH
#ifdef OTHER
__global__ void bad(const float* x, float* y, int n) { int t = threadIdx.x;
#ifdef __CUDA_ARCH__
  asm volatile("st.global.f32 [%0], %1;" :: "l"(y + t), "f"(x[t]));
#else
  y[t] = x[t];
#endif
}
#endif
