extern "C" __global__ void K(const float* x, float* y, int n) { uint i = threadIdx.x; ushort q = 1; ulong z = 2; int64_t w = 3; y[i] = x[i] + q + z + w - 6; }
