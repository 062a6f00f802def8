// The decoding policies: e4m3fn to f32, exactly.
#pragma once
#include "../paged/arithmetic.cuh"
#include "geometry.cuh"

namespace scalar {

struct DecodeByArithmetic {
  __device__ __forceinline__ float operator()(unsigned char byte) const {
    return __half2float(paged::decode_e4m3(byte));
  }
};

// Every code's value. A barrier must stand between fill_codes and the first use.
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
