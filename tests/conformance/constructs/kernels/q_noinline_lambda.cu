__device__ __noinline__ float f(float a) { return a + 1; }
template <typename F> __device__ float g(F h, float a) { return h(a); }
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; auto l = [=] __device__ (float a) { return f(a) * 2; }; if (i < n) y[i] = g(l, x[i]); }
