extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; switch (i & 1) { case 0: y[i] = x[i]; break; default: y[i] = x[i]; } }
