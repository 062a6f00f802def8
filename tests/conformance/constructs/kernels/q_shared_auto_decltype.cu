#include <type_traits>
template <typename T, int N> struct Arr { T v[N]; };
template <typename T> __global__ void K(const T* x, T* y, int n) { __shared__ typename std::conditional<true, Arr<T, 256>, int>::type s; s.v[threadIdx.x] = x[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s.v[255 - threadIdx.x]; }
