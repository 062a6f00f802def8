template <int N> __global__ void __launch_bounds__(N, 2) k(const float* x, float* y, int n) { int t = blockIdx.x * blockDim.x + threadIdx.x; y[t] = x[t]; }
__global__ void good(const float* x, float* y, int n) { int t = blockIdx.x * blockDim.x + threadIdx.x; y[t] = x[t]; }
