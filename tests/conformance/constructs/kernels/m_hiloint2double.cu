extern "C" __global__ void K(const float* x, float* y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) { float v = x[i]; y[i] = (float)__hiloint2double(__double2hiint((double)v), __double2loint((double)v)); }
}