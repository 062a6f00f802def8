extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x, lane = i & 31; float4 v = make_float4(x[i],0,0,0); v.x = __shfl_xor_sync(~0u, v.x, 16); y[i] = v.x; }
