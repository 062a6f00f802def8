__managed__ float scale = 2.0f;
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i] * scale; }
