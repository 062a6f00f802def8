#include <nv/target>
extern "C" __global__ void K(const float* x, float* y, int n) { NV_IF_TARGET(NV_IS_DEVICE, (y[threadIdx.x] = x[threadIdx.x];)) }
