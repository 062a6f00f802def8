template <int Extra> __device__ void f(const float* x, float* y, int n) {
  extern __shared__ float s[]; int t = threadIdx.x; for (int i = t; i < n + Extra; i += 64) s[i] = i < n ? x[i] : 0; __syncthreads();
  for (int i = t; i < n; i += 64) y[i] = s[n - 1 - i]; }
extern "C" __global__ void good(const float* x, float* y, int n) { f<0>(x, y, n); }
extern "C" __global__ void bad(const float* x, float* y, int n) { f<8>(x, y, n); }
