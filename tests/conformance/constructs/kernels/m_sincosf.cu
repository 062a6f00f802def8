extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = ({float s, co; sincosf(v, &s, &co); s + 2*co;}); }
}