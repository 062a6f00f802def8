#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; y[i] = x[i]; if (i % 3 == 0) { auto g = cg::coalesced_threads(); int r = g.thread_rank(); y[i] = x[i] + r - r + (g.size() < 10) ; } }
