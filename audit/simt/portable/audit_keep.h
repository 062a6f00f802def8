// keep(value): computes the value here and keeps it in a register. Without it the compiler may recompute the value at
// each use, in every iteration of a loop. For values of 4 and 8 bytes; does nothing on a CPU.
#pragma once

namespace audit {

#ifdef __CUDACC__

template <class T>
__device__ __forceinline__ void keep(T& value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a register, or two");
  if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
}

#else

template <class T>
inline void keep(T&) {}

#endif

}  // namespace audit
