#include "sanitizers.h"

#ifdef SIMT_SANITIZER_THREAD

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "failure.h"

extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_set_fiber_name(void* fiber, const char* name);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
extern unsigned char simt_on_trial;
}

namespace simt {
namespace {

constexpr unsigned kNoSynchronisation = 1;
// ThreadSanitizer dies at 8,128 fibers. Each that is alive takes 0.8 MiB and makes every barrier slower.
constexpr std::size_t kMaxFibers = 2048;

using Token = std::uint64_t;

// Creating a fiber takes 1 ms, so a later launch, which is ordered after this one, reuses it. Within a launch a fiber
// serves one thread: reuse would order the first thread before the second and hide their races.
class FiberPool {
 public:
  void begin_launch() {
    __tsan_release(&begun_);
    if (reader != nullptr) give_back(reader);
    reader = nullptr;
    free_.insert(free_.end(), used_.begin(), used_.end());
    used_.clear();
  }

  void end_launch() { __tsan_acquire(&ended_); }

  void* take() {
    if (free_.empty()) {
      if (alive_ == kMaxFibers && !used_.empty()) {
        __tsan_destroy_fiber(used_.back());
        used_.pop_back();
        --alive_;
      }
      ++alive_;
      return __tsan_create_fiber(0);
    }
    void* fiber = free_.back();
    free_.pop_back();
    return fiber;
  }

  void give_back(void* fiber) { used_.push_back(fiber); }
  void start() { __tsan_acquire(&begun_); }
  void end() { __tsan_release(&ended_); }

  void* reader = nullptr;  // shared by all threads of this launch that only read

 private:
  std::vector<void*> free_, used_;
  std::size_t alive_ = 0;
  Token begun_ = 0, ended_ = 0;
};

FiberPool pool;  // blocks run on one OS thread (launch.cc)
void* trial = nullptr;
void* trial_from = nullptr;

Token* new_tokens() { return static_cast<Token*>(std::calloc(2, sizeof(Token))); }

// The shadow of a stack still holds the accesses of its last owner; a new mapping clears it.
void forget(char* stack) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(stack, kStackBytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
    fail(Failure::room, "cannot map a stack anew: %s", std::strerror(errno));
}

}  // namespace

Unseen::Unseen() : on_trial_(simt_on_trial) {
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  simt_on_trial = 0;
}

Unseen::~Unseen() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  simt_on_trial = on_trial_;
}

struct Watch::Block {
  struct WarpTokens {
    std::uint32_t mask;
    Token* tokens;
    unsigned char arrivals[32];
  };

  struct Generation {
    std::vector<Token*> deliveries;  // one for each warp
    unsigned readers = 0;            // lanes that have not received them

    ~Generation() {
      for (Token* token : deliveries) std::free(token);
    }
  };

  void* scheduler;
  void* fibers[kScheduler];
  bool started[kScheduler];
  bool fenced[kScheduler];
  unsigned char arrivals[kScheduler];
  Token* tokens;  // allocated for each block: reuse would order the blocks
  std::vector<WarpTokens> warps[kScheduler / 32];
  Token* published[kScheduler / 32] = {};  // by lanes of a warp that has not fully arrived
  Generation* generations[16] = {};
  Generation* promised[kScheduler] = {};

  WarpTokens& warp_tokens(unsigned thread, std::uint32_t mask) {
    for (WarpTokens& known : warps[thread / 32])
      if (known.mask == mask) return known;
    const Unseen unseen;
    warps[thread / 32].push_back({mask, new_tokens(), {}});
    return warps[thread / 32].back();
  }
};

Watch::Watch() : block_(new Block) {}
Watch::~Watch() = default;

void Watch::begin_launch() { pool.begin_launch(); }
void Watch::end_launch() { pool.end_launch(); }

void Watch::begin_block(const StackPool& stacks, unsigned threads) {
  const Unseen unseen;
  Block& block = *block_;
  block.scheduler = __tsan_get_current_fiber();
  block.tokens = new_tokens();
  for (unsigned thread = 0; thread < threads; ++thread) {
    block.fibers[thread] = pool.take();
    block.started[thread] = block.fenced[thread] = false;
    block.arrivals[thread] = 0;
    forget(stacks.stack(thread));
  }
}

void Watch::name_thread(unsigned thread, uint3 block, uint3 index) {
  char text[96];
  std::snprintf(text, sizeof(text), "block (%u,%u,%u) thread (%u,%u,%u)", block.x, block.y, block.z, index.x, index.y,
                index.z);
  __tsan_set_fiber_name(block_->fibers[thread], text);
}

void Watch::end_block(unsigned threads) {
  const Unseen unseen;
  for (unsigned thread = 0; thread < threads; ++thread) pool.give_back(block_->fibers[thread]);
  for (auto& warp : block_->warps) {
    for (auto& known : warp) std::free(known.tokens);
    warp.clear();
  }
  std::free(block_->tokens);
  for (Block::Generation*& generation : block_->generations) {  // arrivals for which nobody waited
    delete generation;
    generation = nullptr;
  }
}

void Watch::before_switch(unsigned, unsigned to) {
  Block& block = *block_;
  __tsan_switch_to_fiber(to == kScheduler ? block.scheduler : block.fibers[to], kNoSynchronisation);
  if (to == kScheduler || block.started[to]) return;
  block.started[to] = true;
  pool.start();
}

void Watch::end_thread(unsigned) { pool.end(); }

unsigned Watch::arrive(unsigned thread) {
  const unsigned turn = block_->arrivals[thread]++ & 1;
  __tsan_release(&block_->tokens[turn]);
  return turn;
}

void Watch::leave(unsigned, unsigned turn) { __tsan_acquire(&block_->tokens[turn]); }

unsigned Watch::arrive_in_warp(unsigned thread, std::uint32_t mask) {
  Block::WarpTokens& known = block_->warp_tokens(thread, mask);
  const unsigned turn = known.arrivals[thread % 32]++ & 1;
  __tsan_release(&known.tokens[turn]);
  return turn;
}

void Watch::leave_in_warp(unsigned thread, std::uint32_t mask, unsigned turn) {
  __tsan_acquire(&block_->warp_tokens(thread, mask).tokens[turn]);
}

void Watch::publish(unsigned thread) {
  Token*& token = block_->published[thread / 32];
  if (token == nullptr) {
    const Unseen unseen;
    token = new_tokens();
  }
  __tsan_release(token);
}

void Watch::deliver(unsigned warp, unsigned id) {
  const Unseen unseen;
  Block::Generation*& generation = block_->generations[id];
  if (generation == nullptr) generation = new Block::Generation;
  generation->deliveries.push_back(block_->published[warp]);
  block_->published[warp] = nullptr;
}

void Watch::promise(unsigned warp, std::uint32_t lanes, unsigned id) {
  Block::Generation* const generation = block_->generations[id];
  for (; lanes != 0; lanes &= lanes - 1) {
    block_->promised[32 * warp + static_cast<unsigned>(__builtin_ctz(lanes))] = generation;
    ++generation->readers;
  }
}

void Watch::end_generation(unsigned id) {
  const Unseen unseen;
  if (block_->generations[id]->readers == 0) delete block_->generations[id];
  block_->generations[id] = nullptr;
}

void Watch::receive(unsigned thread) {
  Block::Generation* const generation = block_->promised[thread];
  for (Token* token : generation->deliveries) __tsan_acquire(token);
  if (--generation->readers > 0) return;
  const Unseen unseen;
  delete generation;
}

void Watch::begin_trial() {
  trial_from = __tsan_get_current_fiber();
  if (trial == nullptr) trial = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(trial, kNoSynchronisation);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void Watch::end_trial(bool kept) {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  __tsan_switch_to_fiber(trial_from, kNoSynchronisation);
  if (kept) return;
  __tsan_destroy_fiber(trial);  // it was abandoned inside function calls
  trial = nullptr;
}

void Watch::begin_reading(char* stack) {
  forget(stack);
  trial_from = __tsan_get_current_fiber();
  const bool first = pool.reader == nullptr;
  if (first) pool.reader = pool.take();
  __tsan_switch_to_fiber(pool.reader, kNoSynchronisation);
  if (first) pool.start();
}

void Watch::end_reading() {
  pool.end();
  __tsan_switch_to_fiber(trial_from, kNoSynchronisation);
}

void Watch::fence(unsigned thread) { block_->fenced[thread] = true; }
bool Watch::has_fenced(unsigned thread) const { return block_->fenced[thread]; }

}  // namespace simt

#endif

#ifdef SIMT_SANITIZER_ADDRESS

#include <sanitizer/common_interface_defs.h>

namespace {
bool found = false;
}

// The sanitizers call these at each report.
extern "C" {
void __asan_on_error() { found = true; }
void __ubsan_on_report() { found = true; }
}

namespace simt {

int sanitizer_status() {
  constexpr int kFound = 66;  // FOUND in audit/sanitize/host/tools.py
  return found ? kFound : 0;
}

Watch::Watch() : stacks_(new Stack[kScheduler + 1]()) {}
Watch::~Watch() = default;

void Watch::begin_block(const StackPool& stacks, unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) stacks_[i] = {stacks.stack(i), kStackBytes, nullptr, false};
  stacks_[kScheduler].ended = false;
}

void Watch::before_switch(unsigned from, unsigned to) {
  Stack& left = stacks_[from];
  __sanitizer_start_switch_fiber(left.ended ? nullptr : &left.fake, stacks_[to].bottom, stacks_[to].bytes);
}

// Runs in the resumed fiber. The first switch leaves the scheduler, whose bounds then become known.
void Watch::after_switch(unsigned to) {
  Stack& scheduler = stacks_[kScheduler];
  const bool first = scheduler.bottom == nullptr;
  __sanitizer_finish_switch_fiber(stacks_[to].fake, first ? &scheduler.bottom : nullptr,
                                  first ? &scheduler.bytes : nullptr);
}

void Watch::end_thread(unsigned thread) { stacks_[thread].ended = true; }

}  // namespace simt

#endif
