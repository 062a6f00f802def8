// The tensor-core product as a bit-exact model: the bits that an NVIDIA tensor core gives for f16 operands
// and an f32 accumulator. tensor_core.md has its five steps and the table of F and L.
#pragma once

#include <cstdint>

namespace simt {

// The rows of the table in tensor_core.md; sm_80 stands for sm_75, sm_86 and sm_89 too.
enum class Arch { sm_70, sm_80, sm_90 };

// D[m,n] = A[m,k] B[k,n] + C[m,n]. All row-major and contiguous; a and b are IEEE binary16 bit patterns, c
// and d binary32. c and d may be the same array, and must not overlap otherwise; d must not overlap a or b.
// m and n are not negative, n is a multiple of 8, k is 8 or a positive multiple of 16: std::invalid_argument
// otherwise. Chains of L products run in ascending k. A NaN result is always 0x7FFFFFFF and a zero result +0.
// It runs on fibers: no heap, no thread-local state, under 16 KiB of stack in any build. MXCSR must be the
// default one (round to nearest, no flush to zero).
void tensor_core_f16(Arch arch, int m, int n, int k, const std::uint16_t* a, const std::uint16_t* b,
                     const float* c, float* d);

// The same function, one product at a time in plain integers, for any m, n, k >= 0: the oracle of the first.
void tensor_core_f16_plain(Arch arch, int m, int n, int k, const std::uint16_t* a, const std::uint16_t* b,
                           const float* c, float* d);

}  // namespace simt
