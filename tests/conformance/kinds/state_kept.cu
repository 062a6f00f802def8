__device__ int calls;
__global__ void good(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t]; if (t == 0) ++calls; }
__global__ void bad(const float* x, float* y, int n) { int t = threadIdx.x; y[t] = x[t] + (calls > 9); __syncthreads();
  if (t == 0) ++calls; }
