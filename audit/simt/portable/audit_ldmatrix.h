// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 as a function, for nvcc, NVRTC and a CPU.
//
// Four 8x8 matrices of 16-bit pieces in shared memory. Row r of matrix m is the 16 bytes at the `row` of lane 8m + r,
// aligned to 16. Lane l gets, in word[m], column l / 4 of rows 2(l % 4), low half, and 2(l % 4) + 1, high half. Call it
// with all 32 lanes of the warp; a lane reads what others wrote, so a barrier must stand between.
#pragma once

#ifdef __CUDACC__

namespace audit {

__device__ __forceinline__ void load_transposed(unsigned (&word)[4], const unsigned char* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "r"(address)
               : "memory");
}

}  // namespace audit

#else

#include <cuda_runtime.h>

namespace audit {

inline void load_transposed(unsigned (&word)[4], const unsigned char* row) {
  const int lane = threadIdx.x % 32;
  for (int m = 0; m < 4; ++m) {
    word[m] = 0;
    for (int i = 0; i < 2; ++i) {
      const auto own = reinterpret_cast<unsigned long long>(row);
      const auto from = __shfl_sync(0xFFFFFFFFu, own, 8 * m + 2 * (lane % 4) + i);
      const unsigned char* const piece = reinterpret_cast<const unsigned char*>(from) + 2 * (lane / 4);
      word[m] |= static_cast<unsigned>(piece[0] | piece[1] << 8) << 16 * i;
    }
  }
}

}  // namespace audit

#endif
