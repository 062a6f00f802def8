// Barriers for some or all warps of a block, each with a number and a thread count.
//
// One header for nvcc, NVRTC (the instructions themselves) and a CPU (which counts arrivals and reports a barrier that
// some threads never reach). Whole warps arrive: all lanes that have not exited, at the same call. A barrier completes
// when warps with `threads` threads in all have arrived by either function, and can then be used again. Waiting threads
// see all writes made before the arrivals. For threads that only arrive, a barrier orders nothing.
//
//   audit::barrier_sync(id, threads);     arrives and waits: bar.sync
//   audit::barrier_arrive(id, threads);   arrives and continues: bar.arrive
//
//   __shared__ audit::Barrier barrier;    the same as an mbarrier, on sm_80 and later
//   barrier.start(id, threads);           one thread, once, before a __syncthreads
//   barrier.sync();
//   barrier.arrive();
//
// id: 1 to 15, because 0 belongs to __syncthreads. threads: a multiple of 32, equal for all arrivals at one completion.
// A warp that arrives twice before the others arrive counts twice, on a GPU too. So two buffers need two barriers, or a
// second barrier that signals when the first buffer is free.
//
// A Barrier object counts threads and has three more rules. Its warps have all 32 lanes, none of them exited. The same
// warps arrive at each completion. A waiting warp takes part in one of the next two completions, because an mbarrier
// knows only its current phase and the one before. No two barriers of a block, of either kind, share a number.
//
// compute-sanitizer's racecheck takes bar.arrive to order nothing, and an mbarrier to order memory only if all lanes
// arrive. So use the object for warps that arrive and continue.
#pragma once

#ifdef __CUDACC__

namespace audit {

__device__ __forceinline__ void barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

class Barrier {
 public:
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  __device__ __forceinline__ void start(unsigned, unsigned threads) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(threads) : "memory");
  }

  __device__ __forceinline__ void arrive() const { phase_of_arrival(); }

  __device__ __forceinline__ void sync() const {
    const unsigned long long phase = phase_of_arrival();
    while (!is_over(phase)) continue;
    __syncwarp();  // lanes may leave the loop one by one
  }

 private:
  __device__ __forceinline__ unsigned address() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(&word_));
  }

  __device__ __forceinline__ unsigned long long phase_of_arrival() const {
    unsigned long long phase;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(phase) : "r"(address()) : "memory");
    return phase;
  }

  __device__ __forceinline__ bool is_over(unsigned long long phase) const {
    unsigned over;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over)
                 : "r"(address()), "l"(phase)
                 : "memory");
#else
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over)
                 : "r"(address()), "l"(phase)
                 : "memory");
#endif
    return over != 0;
  }

  unsigned long long word_;
#else
  __device__ __forceinline__ void start(unsigned id, unsigned threads) {
    id_ = id;
    threads_ = threads;
  }

  __device__ __forceinline__ void arrive() const { barrier_arrive(id_, threads_); }
  __device__ __forceinline__ void sync() const { barrier_sync(id_, threads_); }

 private:
  unsigned id_;
  unsigned threads_;
#endif
};

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

class Barrier {
 public:
  void start(unsigned id, unsigned threads) {
    id_ = id;
    threads_ = threads;
  }

  void sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    simt::named_barrier({id_, threads_, true, {file, line}, this});
  }

  void arrive(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    simt::named_barrier({id_, threads_, false, {file, line}, this});
  }

 private:
  unsigned id_;
  unsigned threads_;
};

}  // namespace audit

#endif
