extern "C" __global__ void K(const int* x, int* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { int v = x[i]; y[i] = __dp4a(v, 0x01020304, 7); }
}