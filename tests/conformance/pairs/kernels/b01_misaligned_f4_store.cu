// copies rows of `pitch` halves into a cache; vector path chosen by the input's alignment only
template <bool Bug> __device__ void copy(const unsigned short* x, unsigned short* y, int n) {
  const unsigned short* s = x + blockIdx.x * 48; unsigned short* d = y + blockIdx.x * n;
  bool vec = ((unsigned long long)s % 16 == 0) && (Bug || (unsigned long long)d % 16 == 0);
  int done = 0;
  if (vec) { for (int i = threadIdx.x; i < n / 8; i += blockDim.x) ((uint4*)d)[i] = ((const uint4*)s)[i]; done = n / 8 * 8; }
  for (int i = done + threadIdx.x; i < n; i += blockDim.x) d[i] = s[i];
}
extern "C" __global__ void good(const unsigned short* x, unsigned short* y, int n) { copy<false>(x, y, n); }
extern "C" __global__ void bad(const unsigned short* x, unsigned short* y, int n) { copy<true>(x, y, n); }
