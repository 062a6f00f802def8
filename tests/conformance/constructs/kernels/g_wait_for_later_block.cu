__device__ int arrived = 0;
extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * 32;
  if (threadIdx.x == 0) { atomicAdd(&arrived, 1); while (atomicAdd(&arrived, 0) % 8 != 0) {} }
  __syncthreads(); y[i] = x[i]; }
