extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; __nanosleep(10); __threadfence(); __threadfence_block(); __threadfence_system(); y[i] = x[i]; }
