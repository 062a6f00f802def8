// The notifications that a sanitizer needs about fibers, barriers and memory. The build defines at most one of
//   SIMT_SANITIZER_THREAD    races: ThreadSanitizer, a TSan fiber for each CUDA thread
//   SIMT_SANITIZER_ADDRESS   addresses: AddressSanitizer and UBSan
//   SIMT_SANITIZER_VALGRIND  uninitialised reads: valgrind's memcheck, queried at every load (definedness.cc)
// and instruments only the kernels, not the runtime, whose accesses belong to no kernel. So the code checks these
// macros and not __SANITIZE_THREAD__. Without any of them a Watch is empty and all of its functions vanish.
#pragma once

#include <cstddef>
#include <cstdint>

#include "include/vector_types.h"
#include "stacks.h"

#if defined(SIMT_SANITIZER_THREAD) || defined(SIMT_SANITIZER_ADDRESS) || defined(SIMT_SANITIZER_VALGRIND)
// Every buffer and shared object is its own heap allocation: exact_buffers.cc, exact_shared_memory.cc.
#define SIMT_SANITIZED 1
#endif

#ifdef SIMT_SANITIZER_VALGRIND
#include <valgrind/memcheck.h>
#endif

#ifdef SIMT_SANITIZER_THREAD
#include <memory>
#include <vector>
#endif

#ifdef SIMT_SANITIZER_ADDRESS
#include <memory>
#endif

namespace simt {

constexpr unsigned kScheduler = 1024;  // the number of the flow of control that starts a block; threads are below it

#ifdef SIMT_SANITIZER_ADDRESS
// The exit status of a completed run. AddressSanitizer and UBSan continue after a finding and would exit with 0.
int sanitizer_status();
#else
inline int sanitizer_status() { return 0; }
#endif

// Hides the runtime's accesses during its lifetime; otherwise malloc and free would count as the running thread's.
#ifdef SIMT_SANITIZER_THREAD
class Unseen {
 public:
  Unseen();
  ~Unseen();

 private:
  const unsigned char on_trial_;
};
#else
struct Unseen {
  Unseen() {}  // user-provided, so that an unused object causes no warning
};
#endif

#if defined(SIMT_SANITIZER_THREAD)

// The order of memory in CUDA: __syncthreads orders a block, a numbered barrier orders arriving threads before waiting
// ones, and __syncwarp orders the lanes of its mask. An atomic after a fence is ordered before an atomic that sees it,
// and a launch before the next. Shuffles, votes and wmma order nothing.
class Watch {
 public:
  static void begin_launch();
  static void end_launch();
  Watch();
  ~Watch();
  void begin_block(const StackPool& stacks, unsigned threads);
  void name_thread(unsigned thread, uint3 block, uint3 index);
  void end_block(unsigned threads);
  void before_switch(unsigned from, unsigned to);
  void after_switch(unsigned) {}
  void end_thread(unsigned thread);
  // Between arrive and leave the thread waits. Two tokens alternate, because with one a thread that runs ahead would
  // hide a race.
  unsigned arrive(unsigned thread);
  void leave(unsigned thread, unsigned turn);
  unsigned arrive_in_warp(unsigned thread, std::uint32_t mask);
  void leave_in_warp(unsigned thread, std::uint32_t mask, unsigned turn);
  // Numbered barriers. A thread publishes its accesses; its warp, once all lanes have arrived, delivers them to the
  // barrier. A complete barrier promises them to the waiting lanes, which receive them when they continue. Each
  // completion has its own tokens, because the next one may order other threads.
  void publish(unsigned thread);
  void deliver(unsigned warp, unsigned id);
  void promise(unsigned warp, std::uint32_t lanes, unsigned id);
  void end_generation(unsigned id);
  void receive(unsigned thread);
  void fence(unsigned thread);
  bool has_fenced(unsigned thread) const;
  // Around the hidden trial of threads, and around threads that only read and share a fiber (scout.cc).
  static void begin_trial();
  static void end_trial(bool kept);
  static void begin_reading(char* stack);
  static void end_reading();

 private:
  struct Block;
  std::unique_ptr<Block> block_;
};

#elif defined(SIMT_SANITIZER_ADDRESS)

class Watch {
 public:
  static void begin_launch() {}
  static void end_launch() {}
  Watch();
  ~Watch();
  void begin_block(const StackPool& stacks, unsigned threads);
  static void name_thread(unsigned, uint3, uint3) {}
  void end_block(unsigned) {}
  void before_switch(unsigned from, unsigned to);
  void after_switch(unsigned to);
  void end_thread(unsigned thread);
  static unsigned arrive(unsigned) { return 0; }
  static void leave(unsigned, unsigned) {}
  static void publish(unsigned) {}
  static void deliver(unsigned, unsigned) {}
  static void promise(unsigned, std::uint32_t, unsigned) {}
  static void end_generation(unsigned) {}
  static void receive(unsigned) {}

 private:
  struct Stack {
    const void* bottom;
    std::size_t bytes;
    void* fake;  // AddressSanitizer's state of a suspended fiber
    bool ended;
  };
  std::unique_ptr<Stack[]> stacks_;
};

#else

class Watch {
 public:
  static void begin_launch() {}
  static void end_launch() {}
#ifdef SIMT_SANITIZER_VALGRIND
  static void begin_block(const StackPool& stacks, unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) (void)VALGRIND_MAKE_MEM_UNDEFINED(stacks.stack(i), kStackBytes);
  }
#else
  static void begin_block(const StackPool&, unsigned) {}
#endif
  static void name_thread(unsigned, uint3, uint3) {}
  static void end_block(unsigned) {}
  static void before_switch(unsigned, unsigned) {}
  static void after_switch(unsigned) {}
  static void end_thread(unsigned) {}
  static unsigned arrive(unsigned) { return 0; }
  static void leave(unsigned, unsigned) {}
  static void publish(unsigned) {}
  static void deliver(unsigned, unsigned) {}
  static void promise(unsigned, std::uint32_t, unsigned) {}
  static void end_generation(unsigned) {}
  static void receive(unsigned) {}
};

#endif

}  // namespace simt
