// Counts the bytes in which two arrays differ: one pass reads each byte of both once, 16 bytes a load.

constexpr int kThreads = 512;
constexpr int kLoads = 4;  // of each array, in flight in a thread

__device__ __forceinline__ uint4 streamed(const uint4* from) { return __ldcs(from); }

// The number of differing bytes: each leaves one bit of 0x01010101.
__device__ __forceinline__ unsigned differing(unsigned a, unsigned b) {
  unsigned bits = a ^ b;
  bits |= bits >> 4 & 0x0F0F0F0Fu;
  bits |= bits >> 2 & 0x33333333u;
  bits |= bits >> 1 & 0x55555555u;
  return __popc(bits & 0x01010101u);
}

__device__ __forceinline__ unsigned differing(const uint4& a, const uint4& b) {
  if (((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0) return 0;
  return differing(a.x, b.x) + differing(a.y, b.y) + differing(a.z, b.z) + differing(a.w, b.w);
}

// a, b u8 [size], both aligned to 16 bytes; adds the count to *total. Any grid, block kThreads.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_differing_bytes(const unsigned char* a, const unsigned char* b, long long size, unsigned long long* total) {
  const uint4* const lines_a = reinterpret_cast<const uint4*>(a);
  const uint4* const lines_b = reinterpret_cast<const uint4*>(b);
  const long long lines = size / 16;
  const long long thread = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  unsigned long long count = 0;
  long long i = thread;
  for (; i + (kLoads - 1) * stride < lines; i += kLoads * stride) {
    uint4 from_a[kLoads], from_b[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      from_a[j] = streamed(lines_a + i + j * stride);
      from_b[j] = streamed(lines_b + i + j * stride);
    }
#pragma unroll
    for (int j = 0; j < kLoads; ++j) count += differing(from_a[j], from_b[j]);
  }
  for (; i < lines; i += stride) count += differing(lines_a[i], lines_b[i]);
  if (thread < size % 16) count += a[lines * 16 + thread] != b[lines * 16 + thread];
  if (count != 0) atomicAdd(total, count);
}
