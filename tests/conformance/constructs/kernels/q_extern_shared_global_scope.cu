extern __shared__ float smem[];
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; smem[i] = x[i]; __syncthreads(); y[i] = smem[n-1-i]; }
