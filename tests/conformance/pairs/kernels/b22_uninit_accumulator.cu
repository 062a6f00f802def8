template <bool Bug> __device__ void f(const float* x, float* y, int n) {
  int t = threadIdx.x; float acc[4]; if (!Bug) for (int k = 0; k < 4; ++k) acc[k] = 0; else for (int k = 0; k < 3; ++k) acc[k] = 0;
  for (int i = 0; i < n; ++i) for (int k = 0; k < 4; ++k) acc[(k + t) & 3] += x[(t * n + i) * 4 + k];
  y[t] = acc[0] + acc[1] + acc[2] + acc[3]; }
extern "C" __global__ void good(const float* x, float* y, int n) { f<false>(x, y, n); }
extern "C" __global__ void bad(const float* x, float* y, int n) { f<true>(x, y, n); }
