struct A { __device__ virtual float f(float v) = 0; };
struct B : A { __device__ float f(float v) override { return v + 1; } };
extern "C" __global__ void K(const float* x, float* y, int n) { B b; A* a = &b; int i = threadIdx.x; if (i < n) y[i] = a->f(x[i]); }
