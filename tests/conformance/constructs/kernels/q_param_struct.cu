struct P { const float* x; float* y; int n; };
extern "C" __global__ void K(P p) { int i = threadIdx.x; if (i < p.n) p.y[i] = p.x[i]; }
