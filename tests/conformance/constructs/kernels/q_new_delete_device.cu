extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; float* p = new float[4]; p[0] = x[i]; y[i] = p[0]; delete[] p; }
