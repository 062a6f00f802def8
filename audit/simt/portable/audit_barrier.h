// Barriers for some warps of a block or all of them, each with a number and a count.
//
// One header for nvcc, NVRTC (the instructions themselves) and a CPU (each arrival counted; who waits in vain is told).
// Whole warps come: all lanes that have not exited, at the same call. A barrier is complete once warps of `threads`
// threads in all have come by either function, and then it is as new. What a thread did before it came is seen by
// those that waited, after that; to those that only arrived a barrier says nothing.
//
//   audit::barrier_sync(id, threads);     comes and waits: bar.sync
//   audit::barrier_arrive(id, threads);   comes and goes on: bar.arrive
//
//   __shared__ audit::Barrier barrier;    the same as an mbarrier, where there is one (sm_80)
//   barrier.start(id, threads);           one thread, once, ahead of a __syncthreads
//   barrier.sync();
//   barrier.arrive();
//
// id: 1 to 15, since 0 is __syncthreads'. threads: a multiple of 32, the same of all who come to one completion. Who
// comes twice before the others came once is counted twice, on a GPU too: two buffers take two barriers, or a second
// one that says when the first is free.
//
// Of a Barrier besides, which counts threads: its warps have all 32 lanes, none of which has exited; they are the same
// at each completion; and who waits takes part in one of the next two completions, since an mbarrier knows its present
// phase and the last one alone. No two barriers of a block have one number, of either kind.
//
// compute-sanitizer's racecheck takes bar.arrive for no order at all, and an mbarrier for one if all lanes arrive: who
// arrives and goes on uses the second kind.
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
