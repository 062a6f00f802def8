template <typename T> struct SharedMemory { __device__ inline operator T*() { extern __shared__ int __smem[]; return (T*)__smem; } };
template <typename T> __global__ void K(const T* x, T* y, int n) { T* s = SharedMemory<T>(); int i = threadIdx.x; s[i] = x[i]; __syncthreads(); y[i] = s[n-1-i]; }
