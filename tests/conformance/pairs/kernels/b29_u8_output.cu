extern "C" __global__ void good(const float* x, unsigned char* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = (unsigned char)(int)fminf(fmaxf(x[i], 0.f), 255.f); }
extern "C" __global__ void bad(const float* x, unsigned char* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = (unsigned char)(int)fmaxf(fminf(x[i], 255.f), 0.f); }
