// One block of a launch: its threads as fibers on one OS thread, and the schedule among them.
//
// At most one fiber runs at a time and runs until it must wait, so nothing here needs a lock. A warp goes on as
// long as a lane of it can (its stacks are in the cache); lanes and warps are taken in turn, or at random by a
// seed. A fiber that waits switches straight to the next one.
#pragma once

#include <cstdint>
#include <memory>

#include "context.h"
#include "device.h"
#include "failure.h"
#include "include/vector_types.h"
#include "include/simt_kernel.h"
#include "sanitizers.h"
#include "shared_memory.h"
#include "stacks.h"

namespace simt {

constexpr unsigned kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxWarps = kMaxThreads / kLanes;
constexpr unsigned kNamedBarriers = 16;  // of a block; number 0 is left to __syncthreads

// What all blocks of a launch have in common.
struct Grid {
  const Kernel* kernel;
  const std::uint64_t* arguments;
  uint3 blocks;
  uint3 threads;
  unsigned shared_bytes;
  std::uint64_t seed;  // 0: in order
};

// A lane is in exactly one of: running, ready, at_barrier, in_named, in_collective, converging, exited.
struct Warp {
  std::uint32_t present;        // lanes that the block has
  std::uint32_t ready;
  std::uint32_t at_barrier;
  std::uint32_t in_named;       // in `named`, until the warp has come or, where it waits, the barrier is complete
  std::uint32_t in_collective;
  std::uint32_t converging;     // in __activemask, until no lane of the warp can run
  std::uint32_t exited;
  unsigned cursor;              // the lane that ran last
  // True while all lanes in_collective brought the same collective and mask as the first of them.
  bool uniform;
  const Collective* first_collective;
  std::uint32_t first_mask;
  NamedCall named;
  LaneSlot slots[kLanes];
};

// One of the barriers that have a number, and who has come since it was complete.
struct NamedBarrier {
  unsigned threads;  // who complete it; this and `site` are the first arrival's
  unsigned arrived;
  std::uint32_t waiting;  // warps
  Site site;
  const void* object;  // none: a number alone
  bool used;           // in this block
};

class Block : private Watch {  // a base, so that an empty one takes no room
 public:
  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Runs every thread of block `number` (x fastest) to its end.
  void run(const Grid& grid, std::uint64_t number);

  unsigned barrier(Barrier kind, bool predicate, Site site);
  void named_barrier(const NamedCall& call);
  std::uint64_t collective(const Collective& collective, std::uint32_t mask, const LaneSlot& brought);
  std::uint32_t converge(Site site);
  void after_atomic(bool contended);
  unsigned lane() const { return current_ % kLanes; }
  SharedMemory& shared() { return shared_; }
  // "kernel NAME, block (x, y, z), thread (x, y, z): ", or nothing outside a kernel.
  void describe(char* text, std::size_t bytes, bool with_thread) const;
  Watch& watch() { return *this; }
  // A thread that is tried out ends here, at the first thing that another could notice.
  void before_effect() {
#ifdef SIMT_SANITIZER_THREAD
    if (on_trial_) end_trial_here();
#endif
  }
  unsigned thread() const { return current_; }

 private:
  static void fiber_main();
#ifdef SIMT_SANITIZER_THREAD
  bool only_reads();
  bool run_in_turn();
  static void turn_main();
  void end_trial_here();

  bool on_trial_ = false;
  bool turn_ended_ = false;
#endif
  void switch_threads(unsigned left, unsigned resumed);
  void suspend();
  [[noreturn]] void exit_thread();
  void make_ready(unsigned warp, std::uint32_t lanes);
  void release_barrier();
  void count_named(unsigned warp);
  void leave_named(unsigned warp);
  void release_converging(unsigned warp);
  unsigned next_thread();
  unsigned pick_bit(std::uint32_t bits, unsigned after);
  void enter(unsigned thread);
  void fail_on_exit_from_collective(const Warp& warp, unsigned lane) const;
  [[noreturn]] void fail_stuck() const;
  [[noreturn]] void fail_in_named(const NamedCall& call, const char* format, ...) const
      __attribute__((format(printf, 3, 4)));
  uint3 thread_index(unsigned thread) const;

  StackPool stacks_;
  SharedMemory shared_;
  std::unique_ptr<Context[]> contexts_;
  std::unique_ptr<Warp[]> warps_;
  std::unique_ptr<uint3[]> thread_indices_;
  Context scheduler_;

  const Grid* grid_ = nullptr;
  uint3 index_{};
  unsigned threads_ = 0;
  unsigned live_ = 0;
  unsigned current_ = 0;
  std::uint32_t active_warps_ = 0;  // warps with a lane that is ready or converging; may lag for the current one
  bool running_ = false;
  unsigned atomics_ = 0;
  std::uint64_t random_ = 0;        // 0: in order

  unsigned arrived_ = 0;
  bool barrier_uniform_ = true;
  Barrier barrier_kind_ = Barrier::sync;
  Site barrier_site_{};
  unsigned barrier_count_ = 0;
  // Safe to keep single: the next barrier ends only after every live thread has read this one's result.
  unsigned barrier_result_ = 0;
  NamedBarrier named_[kNamedBarriers]{};
};

// The block that this OS thread is running, or null. A fiber never changes its OS thread.
extern __thread Block* running_block;
inline Block* current_block() { return running_block; }

// Like `fail`, with the kernel and block in front of the message.
[[noreturn]] void fail_in_block(Failure kind, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Where the calling OS thread is, ending in ": ", or nothing; async-signal-safe but for snprintf.
void describe_current_thread(char* text, std::size_t bytes);

}  // namespace simt
