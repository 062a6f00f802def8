// Two halves in one register, as the tensor core takes them.
#pragma once
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace grouped {
namespace direct {

__device__ __forceinline__ unsigned bits_of(const __half2_raw& pair) {
  return pair.x | static_cast<unsigned>(pair.y) << 16;
}

__device__ __forceinline__ __half2 pair_of(unsigned bits) {
  __half2_raw pair;
  pair.x = static_cast<unsigned short>(bits);
  pair.y = static_cast<unsigned short>(bits >> 16);
  return pair;
}

// Two e4m3 bytes: exact.
__device__ __forceinline__ unsigned decode_pair(unsigned short bytes) {
  return bits_of(__nv_cvt_fp8x2_to_halfraw2(bytes, __NV_E4M3));
}

// The lower or the upper two of four e4m3 bytes. As one of two 16-bit numbers in a register they are converted where
// they are; a shift would be an instruction.
__device__ __forceinline__ unsigned decode_low(unsigned bytes) {
  return decode_pair(reinterpret_cast<const ushort2&>(bytes).x);
}

__device__ __forceinline__ unsigned decode_high(unsigned bytes) {
  return decode_pair(reinterpret_cast<const ushort2&>(bytes).y);
}

// V * 2^-11, exact in f16 for every finite e4m3.
__device__ __forceinline__ unsigned shrink_pair(unsigned pair) {
  return bits_of(__hmul2(pair_of(pair), __half2half2(__ushort_as_half(0x1000))));
}

// Of two tokens' words the bytes 0 and 1, and 2 and 3: each byte's pair in 16 bits.
__device__ __forceinline__ void interleave(unsigned& low, unsigned& high, unsigned first, unsigned second) {
  low = __byte_perm(first, second, 0x5140);
  high = __byte_perm(first, second, 0x7362);
}

}  // namespace direct
}  // namespace grouped
