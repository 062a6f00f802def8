extern "C" __global__ void K(const int* x, int* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { int v = x[i]; y[i] = (int)(sizeof(long)) * 100 + (int)sizeof(size_t)*10 + (int)sizeof(wchar_t); }
}