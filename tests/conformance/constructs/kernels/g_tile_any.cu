#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void K(const float* x, float* y, int n) { auto b = cg::this_thread_block(); auto t = cg::tiled_partition<8>(b); float v = x[b.thread_rank()]; for (int o = t.size()/2; o; o /= 2) v += t.shfl_down(v, o); v = t.shfl(v, 0); y[b.thread_rank()] = v + b.group_index().x + t.meta_group_rank()*0; }
