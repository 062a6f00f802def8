template <bool Bug> __device__ void f(const float* x, float* y) {
  __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; if (!Bug) s[t + 32] = x[t]; __syncthreads();
  y[t] = fminf(s[t], s[t + 32]);
}
__global__ void good(const float* x, float* y, int n) { f<false>(x, y); }
__global__ void bad(const float* x, float* y, int n) { f<true>(x, y); }
