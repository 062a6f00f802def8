extern "C" __global__ void K(const unsigned int* x, unsigned int* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { unsigned int v = x[i]; y[i] = (v >> (v & 63)); }
}