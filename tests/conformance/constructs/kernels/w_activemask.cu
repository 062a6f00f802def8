extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; if (lane < 7) y[i] = x[i] + __popc(__activemask()) - 7; else y[i] = x[i]; }
