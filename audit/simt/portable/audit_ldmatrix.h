// ldmatrix.sync.aligned.m8n8.x4, plain and transposed, as a function for nvcc, NVRTC and a CPU.
//
// Loads four 8x8 matrices of 16-bit elements from shared memory into a warp's registers. Lane l passes the address of
// row l % 8 of matrix l / 8: 16 bytes, aligned to 16. Then register i of lane (g, t) = (lane / 4, lane % 4) holds from
// row g of matrix i the elements 2t (low half) and 2t + 1; if Transposed, from column g the rows 2t and 2t + 1. Call it
// with all 32 lanes, and put a barrier between the writes of other lanes and this load.
#pragma once

#ifndef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace audit {

template <bool Transposed>
__device__ __forceinline__ void load_matrices(unsigned (&registers)[4], const void* row) {
#if defined(__CUDACC__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750)
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
  }
#else
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const unsigned long long own = reinterpret_cast<unsigned long long>(row);
  for (int i = 0; i < 4; ++i) {
    if constexpr (Transposed) {
      const unsigned long long first = __shfl_sync(0xFFFFFFFFu, own, 8 * i + 2 * t);
      const unsigned long long second = __shfl_sync(0xFFFFFFFFu, own, 8 * i + 2 * t + 1);
      registers[i] = reinterpret_cast<const unsigned short*>(first)[g] |
                     static_cast<unsigned>(reinterpret_cast<const unsigned short*>(second)[g]) << 16;
    } else {
      registers[i] = reinterpret_cast<const unsigned*>(__shfl_sync(0xFFFFFFFFu, own, 8 * i + g))[t];
    }
  }
#endif
}

__device__ __forceinline__ void load_transposed(unsigned (&registers)[4], const void* row) {
  load_matrices<true>(registers, row);
}

}  // namespace audit
