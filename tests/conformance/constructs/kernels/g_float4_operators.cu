inline __device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x+b.x, a.y+b.y, a.z+b.z, a.w+b.w); }
extern "C" __global__ void K(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n/4) { float4 v = reinterpret_cast<const float4*>(x)[i]; reinterpret_cast<float4*>(y)[i] = v + v; } }
