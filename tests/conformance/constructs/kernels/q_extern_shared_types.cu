extern "C" __global__ void K(const float* x, float* y, int n) {
  extern __shared__ unsigned char raw[]; float* f = reinterpret_cast<float*>(raw); int* k = reinterpret_cast<int*>(f + n);
  int i = threadIdx.x; f[i] = x[i]; k[i] = n - 1 - i; __syncthreads(); y[i] = f[k[i]]; }
