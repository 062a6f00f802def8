// The interface that device code on the CPU calls: barriers, warp collectives, shared memory. The headers with CUDA's
// names are built on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

struct Site {
  const char* file;
  int line;
};

// One __shared__ declaration in one function or template instantiation. Its address is its identity.
struct SharedObject {
  unsigned bytes;
  unsigned alignment;
  const char* name;
  const char* file;
  int line;
};

constexpr unsigned stricter(std::size_t a, std::size_t b) { return static_cast<unsigned>(a > b ? a : b); }

// Kinds of what nobody has written: a NaN, a large number, and a large negative number or 0.
constexpr unsigned kPoisonKinds = 3;

void* shared_object(const SharedObject& object);
void* dynamic_shared(unsigned alignment);

enum class Barrier : unsigned char { sync, count, all, any };

// Waits for every thread of the block that has not exited. Returns the number of them with a non-zero predicate.
unsigned block_barrier(Barrier kind, bool predicate, Site site);

// A call of barrier_sync, which waits, or of barrier_arrive (portable/audit_barrier.h).
struct NamedCall {
  unsigned id;
  unsigned threads;
  bool waits;
  Site site;
  const void* object = nullptr;  // an mbarrier, which counts threads, so that it never completes without exited ones

  const char* name() const { return waits ? "barrier_sync" : "barrier_arrive"; }
};

void named_barrier(const NamedCall& call);

struct LaneSlot;

// An operation of the lanes in a mask. The last lane to arrive completes it for all.
struct Collective {
  const char* name;
  bool whole_warp;  // needs all 32 lanes, as tensor-core operations do
  void (*complete)(LaneSlot* slots, std::uint32_t lanes);
};

// One lane's operands and result of a collective.
struct LaneSlot {
  const Collective* collective;
  std::uint32_t mask;
  std::uint32_t argument;  // the source lane
  std::uint64_t value;
  std::uint64_t result;
  void* operands;
  Site site;
  bool whole;  // in __activemask: never a part of the lanes that are there
};

constexpr std::uint32_t kFullMask = 0xFFFFFFFFU;

std::uint64_t join_collective(const Collective& collective, std::uint32_t mask, const LaneSlot& brought);
std::uint32_t active_mask(Site site, bool whole = false);
unsigned current_lane();

// Ends the run, as __trap() does.
[[noreturn]] void trap(Site site);

// Ends the run: the launch has more threads a block than __launch_bounds__ at `site` allows, and a GPU refuses it.
[[noreturn]] void exceeded_launch_bounds(Site site, unsigned threads);

// A read of `bytes` bytes through the read-only path (read_only.cc). A program without one pays nothing.
extern bool has_read_only_loads;
void read_only_load(const void* address, std::size_t bytes, Site site);
template <typename T>
inline const bool loads_read_only = has_read_only_loads = true;  // set before main, where a kernel has such a load

// Lets other threads of the block run from time to time, so that a loop that spins on an atomic ends.
void after_atomic(bool contended);

#ifdef SIMT_SANITIZER_THREAD
// Records __threadfence() of the running thread, and whether it has called one: then its atomics publish its writes.
void memory_fence();
bool has_fenced();
#endif

enum class Shuffle : unsigned char { index, up, down, exchange };
// `poison` has a word of each kind: the result of reading a lane outside the mask.
std::uint64_t shuffle(Shuffle kind, std::uint32_t mask, std::uint64_t value, unsigned argument, int width,
                      const std::uint64_t (&poison)[kPoisonKinds], Site site);
enum class Vote : unsigned char { ballot, any, all, match, synchronise };
std::uint64_t vote(Vote kind, std::uint32_t mask, std::uint64_t value, Site site);

}  // namespace simt
