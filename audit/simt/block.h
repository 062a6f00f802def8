// One block of a launch: its threads as fibers on one OS thread, and their schedule.
//
// At most one fiber runs at a time, until it must wait, so nothing here needs a lock. A warp keeps running while one of
// its lanes can, because its stacks are in the cache. Lanes and warps take turns in order, or at random with a seed. A
// fiber that waits switches directly to the next one.
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

#ifdef SIMT_SANITIZER_THREAD
extern "C" void simt_flush();  // tells ThreadSanitizer of the running thread's last write (races.cc)
#endif

namespace simt {

constexpr unsigned kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxWarps = kMaxThreads / kLanes;
constexpr unsigned kNamedBarriers = 16;  // of a block; number 0 belongs to __syncthreads

// The properties that all blocks of a launch share.
struct Grid {
  const Kernel* kernel;
  const std::uint64_t* arguments;
  uint3 blocks;
  uint3 threads;
  unsigned shared_bytes;
  std::uint64_t seed;  // 0: in order
  unsigned poison;     // the kind in shared memory and in lanes that nobody names
};

// A lane is in exactly one of: running, ready, at_barrier, in_named, in_collective, converging, exited.
struct Warp {
  std::uint32_t present;        // lanes that exist in the block
  std::uint32_t ready;
  std::uint32_t at_barrier;
  std::uint32_t in_named;       // in `named`, until the whole warp has arrived and, if it waits, the barrier completes
  std::uint32_t in_collective;
  std::uint32_t converging;     // in __activemask, until no lane of the warp can run
  std::uint32_t exited;
  unsigned cursor;              // the lane that ran last
  // True while all lanes in_collective have the same collective and mask as the first of them.
  bool uniform;
  const Collective* first_collective;
  std::uint32_t first_mask;
  NamedCall named;
  LaneSlot slots[kLanes];
};

// A numbered barrier, and the arrivals since its last completion.
struct NamedBarrier {
  unsigned threads;  // needed to complete it; this and `site` come from the first arrival
  unsigned arrived;
  std::uint32_t waiting;  // warps
  Site site;
  const void* object;  // null: a barrier without an object
  bool used;           // by this block
};

class Block : private Watch {  // a base class, so that an empty Watch takes no space
 public:
  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Runs every thread of block `number` (x fastest) to its end.
  void run(const Grid& grid, std::uint64_t number);

  unsigned barrier(Barrier kind, bool predicate, Site site);
  void named_barrier(const NamedCall& call);
  std::uint64_t collective(const Collective& collective, std::uint32_t mask, const LaneSlot& brought);
  std::uint32_t converge(Site site, bool whole);
  void after_atomic(bool contended, std::uint64_t address);
  unsigned lane() const { return current_ % kLanes; }
  SharedMemory& shared() { return shared_; }
  // "kernel NAME, block (x, y, z), thread (x, y, z): ", or nothing outside a kernel.
  void describe(char* text, std::size_t bytes, bool with_thread) const;
  Watch& watch() { return *this; }
  // Ends the trial of a thread (scout.cc) at its first effect that another thread could notice.
  void before_effect() {
#ifdef SIMT_SANITIZER_THREAD
    simt_flush();
    if (on_trial_) end_trial_here();
#endif
  }
  unsigned thread() const { return current_; }
  const Grid& grid() const { return *grid_; }

  // For the watchdog, from its own thread: they change whenever another thread runs, and at each block.
  std::uint64_t switches() const { return __atomic_load_n(&switches_, __ATOMIC_RELAXED); }
  std::uint64_t yields() const { return __atomic_load_n(&yields_, __ATOMIC_RELAXED); }
  std::uint64_t blocks_begun() const { return __atomic_load_n(&blocks_begun_, __ATOMIC_RELAXED); }
  // For its signal handler, which interrupted the running thread at this address: lets other threads run.
  void interrupt(std::uint64_t at);
  // Likewise: ends the program with a line that says where the threads are. `at` is 0 where it is not known.
  [[noreturn]] void fail_over_time(std::uint64_t at) const;
  // During its lifetime, the running thread is in the runtime and cannot be interrupted.
  class Inside {
   public:
    explicit Inside(Block& block) : block_(block) { block_.inside_ = true; }
    ~Inside() { block_.inside_ = false; }

   private:
    Block& block_;
  };

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
  void yield();
  [[noreturn]] void exit_thread();
  void make_ready(unsigned warp, std::uint32_t lanes);
  void release_barrier();
  void count_named(unsigned warp);
  void leave_named(unsigned warp);
  void release_converging(unsigned warp);
  std::uint32_t part_of(std::uint32_t lanes);
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
  volatile bool inside_ = true;
  std::uint64_t switches_ = 0;
  std::uint64_t yields_ = 0;  // contended atomics and interruptions
  std::uint64_t blocks_begun_ = 0;
  std::unique_ptr<std::uint64_t[]> addresses_;  // where each thread was interrupted, or yielded, last
  unsigned atomics_ = 0;
  std::uint64_t random_ = 0;        // 0: in order

  unsigned arrived_ = 0;
  bool barrier_uniform_ = true;
  Barrier barrier_kind_ = Barrier::sync;
  Site barrier_site_{};
  unsigned barrier_count_ = 0;
  // One result is enough: the next barrier completes only after every live thread has read it.
  unsigned barrier_result_ = 0;
  NamedBarrier named_[kNamedBarriers]{};
};

// The block that this OS thread is running, or null. A fiber never changes its OS thread.
extern __thread Block* running_block;
inline Block* current_block() { return running_block; }

// Like `fail`, with the kernel and block before the message.
[[noreturn]] void fail_in_block(Failure kind, const char* format, ...) __attribute__((format(printf, 2, 3)));
// The calling OS thread's kernel, block and thread, ending in ": ", or nothing; async-signal-safe except for snprintf.
void describe_current_thread(char* text, std::size_t bytes);

// An address of code, as the program's file names it.
std::uint64_t offset_in_program(std::uint64_t address);
// Inside the signal handler: further interruptions may reach the calling OS thread.
void allow_interrupts();

}  // namespace simt
