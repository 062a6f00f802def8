extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; y[i] = __popc(__ballot(x[i] > 0)); }
