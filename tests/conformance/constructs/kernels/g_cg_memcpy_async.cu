#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void K(const float* x, float* y, int n) { __shared__ float s[256]; auto b = cg::this_thread_block(); cg::memcpy_async(b, s, x, sizeof(float) * 256); cg::wait(b); y[threadIdx.x] = s[threadIdx.x]; }
