extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = (isnan(v) ? 1 : 0) + (isinf(v) ? 2 : 0) + (isfinite(v) ? 4 : 0) + (signbit(v) ? 8 : 0); }
}