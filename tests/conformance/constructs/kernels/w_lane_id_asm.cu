extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; unsigned l; asm volatile("mov.u32 %0, %%laneid;" : "=r"(l)); y[i] = x[i] + l - lane; }
