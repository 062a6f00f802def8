// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 as a function: D[16,8] = A[16,16] B[16,8] + C[16,8].
//
// One header for nvcc, NVRTC (the instruction itself) and a CPU (the tensor-core model). Call it with all 32
// lanes of the warp. With g = lane / 4 and t = lane % 4, by the PTX ISA:
//   a[0..3], two halves each, low half first: rows g, g+8, g, g+8; columns 2t, 2t+1 (a[0], a[1]), +8 (a[2], a[3])
//   b[0..1], two halves each: rows 2t, 2t+1, then +8; column g
//   c and d[0..3]: row g columns 2t, 2t+1, then row g+8
#pragma once

#ifdef __CUDACC__

namespace audit {

__device__ __forceinline__ void mma_m16n8k16(float d[4], const unsigned a[4], const unsigned b[2], const float c[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

}  // namespace audit

#else

#include "../warp_mma.h"

#ifndef SIMT_ARCH
#define SIMT_ARCH sm_90
#endif

namespace audit {

inline void mma_m16n8k16(float d[4], const unsigned a[4], const unsigned b[2], const float c[4],
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::warp_mma(simt::MmaShape::m16n8,
                 {reinterpret_cast<const std::uint16_t*>(a), reinterpret_cast<const std::uint16_t*>(b), c, d,
                  simt::Arch::SIMT_ARCH},
                 {file, line});
}

}  // namespace audit

#endif
