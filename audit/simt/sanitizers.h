// What a sanitizer must be told about fibers, barriers and memory. The build defines at most one of
//   SIMT_SANITIZER_THREAD    races: ThreadSanitizer, a TSan fiber for each CUDA thread
//   SIMT_SANITIZER_ADDRESS   addresses: AddressSanitizer and UBSan
//   SIMT_SANITIZER_VALGRIND  uninitialised reads: valgrind's memcheck, asked at every load (definedness.cc)
// and instruments the kernels alone, not the runtime, whose own accesses are none of a kernel's. So these macros and
// not __SANITIZE_THREAD__ are what counts. Without any of them a Watch is empty and all of its functions vanish.
#pragma once

#include <cstddef>
#include <cstdint>

#include "include/vector_types.h"
#include "stacks.h"

#if defined(SIMT_SANITIZER_THREAD) || defined(SIMT_SANITIZER_ADDRESS) || defined(SIMT_SANITIZER_VALGRIND)
// Every buffer and every shared object is a heap allocation of its own: exact_buffers.cc, exact_shared_memory.cc.
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

constexpr unsigned kScheduler = 1024;  // stands for the flow of control that starts a block; threads are below it

#ifdef SIMT_SANITIZER_ADDRESS
// What a run that came to its end exits with: AddressSanitizer and UBSan that go on after a finding would say 0.
int sanitizer_status();
#else
inline int sanitizer_status() { return 0; }
#endif

// While one lives, nothing that the runtime does counts as an access of the running thread; malloc and free would.
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
  Unseen() {}  // declared, so that an unused one is no warning
};
#endif

#if defined(SIMT_SANITIZER_THREAD)

// What orders memory, as CUDA has it: __syncthreads in a block, a barrier that has a number between who comes and who
// waits, __syncwarp among the lanes of its mask, an atomic
// after a fence with an atomic that sees it, one launch with the next. Shuffles, votes and wmma order nothing.
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
  // Between arrive and leave the thread waits; two tokens in turn, or one that runs ahead would hide a race.
  unsigned arrive(unsigned thread);
  void leave(unsigned thread, unsigned turn);
  unsigned arrive_in_warp(unsigned thread, std::uint32_t mask);
  void leave_in_warp(unsigned thread, std::uint32_t mask, unsigned turn);
  // Barriers that have a number. A thread publishes what it did; its warp, once whole, delivers that to the barrier;
  // when this is complete it is promised to those lanes that wait, which receive it as they go on. Each completion has
  // tokens of its own: whom one orders, the next may have nothing to do with.
  void publish(unsigned thread);
  void deliver(unsigned warp, unsigned id);
  void promise(unsigned warp, std::uint32_t lanes, unsigned id);
  void end_generation(unsigned id);
  void receive(unsigned thread);
  void fence(unsigned thread);
  bool has_fenced(unsigned thread) const;
  // Around threads that are tried out, unseen, and around those that only read and share a fiber (scout.cc).
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
    void* fake;  // what AddressSanitizer keeps for a fiber that waits
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
