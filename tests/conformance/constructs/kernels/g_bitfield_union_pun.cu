extern "C" __global__ void K(const float* x, float* y, int n) { union { float f; unsigned u; } v; v.f = x[threadIdx.x]; v.u ^= 0x80000000u; y[threadIdx.x] = v.f; }
