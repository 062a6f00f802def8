// The product D[16,8] = A[16,16] B[16,8] + C[16,8] of audit_mma.h on every architecture, and its number of steps.
//
// kProductStep: the number of the 16 products that one exact step adds. If it is 16, the order of the k values does not
// matter: any permutation of them, the same for A and B, gives the same bytes. Otherwise it is smaller; 8 also stands
// for unknown.
//
// sm_75 computes the same product in two halves of k, in this order.
#pragma once

#include "audit_mma.h"

namespace audit {

#ifdef __CUDACC__

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr int kProductStep = 16;
#else
constexpr int kProductStep = 8;
#endif

__device__ __forceinline__ void product_m16n8k16(float d[4], const unsigned a[4], const unsigned b[2],
                                                 const float c[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  float half[4];
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(half[0]), "=f"(half[1]), "=f"(half[2]), "=f"(half[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]), "f"(half[0]), "f"(half[1]), "f"(half[2]), "f"(half[3]));
#else
  mma_m16n8k16(d, a, b, c);
#endif
}

#else

constexpr int kProductStep = simt::Arch::SIMT_ARCH == simt::Arch::sm_90 ? 16 : 8;

inline void product_m16n8k16(float d[4], const unsigned a[4], const unsigned b[2], const float c[4],
                             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  mma_m16n8k16(d, a, b, c, file, line);
}

#endif

}  // namespace audit
