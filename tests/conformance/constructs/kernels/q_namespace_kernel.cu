namespace a { namespace b { template <typename T> __global__ void K(const T* x, T* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i]; } } }
