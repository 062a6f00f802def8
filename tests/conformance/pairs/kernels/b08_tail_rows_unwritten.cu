template <bool Bug> __device__ void unpack(const float* g, const int* len, const int* off, float* y, int maxlen, int d) {
  int s = blockIdx.x; int n = len[s], m = n < maxlen ? n : maxlen;
  for (int i = threadIdx.x; i < (Bug ? m : n) * d; i += blockDim.x) { int cell = i / d; y[off[s] * d + i] = cell < m ? g[(s * maxlen + cell) * d + i % d] : 0.0f; }
}
extern "C" __global__ void good(const float* g, const int* len, const int* off, float* y, int maxlen, int d) { unpack<false>(g, len, off, y, maxlen, d); }
extern "C" __global__ void bad(const float* g, const int* len, const int* off, float* y, int maxlen, int d) { unpack<true>(g, len, off, y, maxlen, d); }
