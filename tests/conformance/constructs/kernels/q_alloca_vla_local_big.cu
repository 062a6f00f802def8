extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; float v[16384]; for (int k = 0; k < 16384; ++k) v[k] = x[i] + k; y[i] = v[(int)(n*0)]; }
