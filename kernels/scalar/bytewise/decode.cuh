// The decoding policies: e4m3fn to f32, exactly.
#pragma once
#include <cuda_fp16.h>

#include "../geometry.cuh"

namespace scalar {

// e4m3fn to f16, exactly. The shifted bits are the number times 2^-8, also where it is subnormal.
__device__ __forceinline__ __half decode_e4m3(unsigned char byte) {
  const unsigned sign = (byte & 0x80u) << 8;
  const unsigned magnitude = byte & 0x7Fu;
  if (magnitude == 0x7Fu) return __ushort_as_half(static_cast<unsigned short>(sign | 0x7E00u));
  const __half scaled = __ushort_as_half(static_cast<unsigned short>(sign | (magnitude << 7)));
  return __float2half_rn(__half2float(scaled) * 256.0f);
}

struct DecodeByArithmetic {
  __device__ __forceinline__ float operator()(unsigned char byte) const {
    return __half2float(decode_e4m3(byte));
  }
};

// The value of every code. A barrier must separate fill_codes from the first use.
struct CodeTable {
  float value[256];
};

__device__ __forceinline__ void fill_codes(CodeTable& table) {
  for (int code = threadIdx.x; code < 256; code += kThreads) {
    table.value[code] = DecodeByArithmetic()(static_cast<unsigned char>(code));
  }
}

struct DecodeByLookup {
  const CodeTable& table;  // shared memory

  __device__ __forceinline__ float operator()(unsigned char byte) const { return table.value[byte]; }
};

}  // namespace scalar
