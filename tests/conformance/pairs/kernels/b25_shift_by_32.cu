// inclusive lane mask; right on a GPU, where a shift by 32 gives 0
extern "C" __global__ void good(const int* x, int* y) { int lane = threadIdx.x; unsigned m = 0xffffffffu >> (31 - lane); y[lane] = __popc(m & __ballot_sync(~0u, x[lane] > 4)); }
extern "C" __global__ void bad(const int* x, int* y) { int lane = threadIdx.x; unsigned m = (1u << (lane + 1)) - 1; y[lane] = __popc(m & __ballot_sync(~0u, x[lane] > 4)); }
