// y = (q - zero) scale, q in four bits with a sign, two a byte, the first one low; one thread a byte, one scale a row.
template <bool Extended, bool Fused>
__device__ void dequantise(const unsigned char* q, const float* scale, const float* zero, float* y, int bytes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = blockIdx.y * bytes + i;
  if (i >= bytes) return;
  float s = scale[blockIdx.y], z = zero[blockIdx.y];
  for (int high = 0; high < 2; ++high) {
    int nibble = high ? q[at] >> 4 : q[at] & 15;
    int code = Extended || !high ? (nibble ^ 8) - 8 : nibble;
    y[2 * at + high] = Fused ? fmaf(static_cast<float>(code), s, -(z * s)) : (code - z) * s;
  }
}

extern "C" __global__ void dequantise_control(
    const unsigned char* q, const float* scale, const float* zero, float* y, int bytes) {
  dequantise<true, false>(q, scale, zero, y, bytes);
}
extern "C" __global__ void dequantise_fused(
    const unsigned char* q, const float* scale, const float* zero, float* y, int bytes) {
  dequantise<true, true>(q, scale, zero, y, bytes);
}
// WRONG: the high nibble keeps no sign.
extern "C" __global__ void dequantise_unsigned(
    const unsigned char* q, const float* scale, const float* zero, float* y, int bytes) {
  dequantise<false, false>(q, scale, zero, y, bytes);
}
