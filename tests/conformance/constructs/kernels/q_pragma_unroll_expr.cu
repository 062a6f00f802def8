template <int N> __device__ float s(const float* x) { float a = 0;
#pragma unroll N
  for (int k = 0; k < N; ++k) a += x[k];
#pragma unroll 1
  for (int k = 0; k < N; ++k) a += x[k];
  return a; }
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; if (i + 4 <= n) y[i] = s<4>(x + i) * 0 + x[i]; else y[i] = x[i]; }
