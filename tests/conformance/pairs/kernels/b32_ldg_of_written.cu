// reads through the read-only path what the same kernel wrote: stale on a GPU
extern "C" __global__ void good(const float* x, float* y, float* w, int n) { int t = threadIdx.x; w[t] = x[t] * 2; __syncthreads(); y[t] = w[n - 1 - t]; }
extern "C" __global__ void bad(const float* x, float* y, float* w, int n) { int t = threadIdx.x; w[t] = x[t] * 2; __syncthreads(); y[t] = __ldg(&w[n - 1 - t]); }
