#define DECL(T, name, N) __shared__ T name[N]
extern "C" __global__ void K(const float* x, float* y, int n) { DECL(float, s, 256); s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x]; }
