// bar.sync and bar.arrive: barriers of a block that have a number and a count, for some of its warps or all of them.
//
// One header for nvcc, NVRTC (the instructions themselves) and a CPU (each arrival counted; who waits in vain is told).
// Whole warps come: all lanes that have not exited, at the same call. A barrier is complete once warps of `threads`
// threads in all have come by either function, and then it is as new. What a thread did before it came is seen by
// those that waited, after that; to those that only arrived a barrier says nothing.
//
//   audit::barrier_sync(id, threads);     comes and waits
//   audit::barrier_arrive(id, threads);   comes and goes on
//
// id: 1 to 15, since 0 is __syncthreads'. threads: a multiple of 32, the same of all who come to one completion. Who
// comes twice before the others came once is counted twice, on a GPU too: two buffers take two numbers, or a second
// barrier that says when the first is free.
#pragma once

#ifdef __CUDACC__

namespace audit {

__device__ __forceinline__ void barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace audit

#else

#include "../device.h"

namespace audit {

inline void barrier_sync(unsigned id, unsigned threads, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  simt::named_barrier({id, threads, true, {file, line}});
}

inline void barrier_arrive(unsigned id, unsigned threads, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
  simt::named_barrier({id, threads, false, {file, line}});
}

}  // namespace audit

#endif
