#include "block.h"

#include <cstdio>

// CUDA's built-in variables, one set for each OS thread, updated at every switch. Headers declare them const.
__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

namespace simt {

__thread Block* running_block = nullptr;

namespace {

// Only their names are used, in messages about waiting threads.
constexpr Collective barriers[] = {{"__syncthreads", false, nullptr},
                                   {"__syncthreads_count", false, nullptr},
                                   {"__syncthreads_and", false, nullptr},
                                   {"__syncthreads_or", false, nullptr}};

std::uint32_t bit(unsigned lane) { return 1U << lane; }

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

bool same_site(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || __builtin_strcmp(a.file, b.file) == 0);
}

}  // namespace

Block::Block()
    : contexts_(new Context[kMaxThreads]),
      warps_(new Warp[kMaxWarps]),
      thread_indices_(new uint3[kMaxThreads]),
      addresses_(new std::uint64_t[kMaxThreads]()) {}

uint3 Block::thread_index(unsigned thread) const {
  const uint3 size = grid_->threads;
  return {thread % size.x, thread / size.x % size.y, thread / (size.x * size.y)};
}

void Block::run(const Grid& grid, std::uint64_t number) {
  grid_ = &grid;
  const std::uint64_t per_layer = static_cast<std::uint64_t>(grid.blocks.x) * grid.blocks.y;
  index_ = {static_cast<unsigned>(number % grid.blocks.x),
            static_cast<unsigned>(number / grid.blocks.x % grid.blocks.y), static_cast<unsigned>(number / per_layer)};
  threads_ = live_ = grid.threads.x * grid.threads.y * grid.threads.z;
  random_ = grid.seed == 0 ? 0 : mix(grid.seed ^ mix(number)) | 1;
  arrived_ = 0;
  barrier_uniform_ = true;
  for (NamedBarrier& named : named_) named = {};
  atomics_ = 0;
  active_warps_ = 0;
  inside_ = true;
  __atomic_store_n(&blocks_begun_, blocks_begun_ + 1, __ATOMIC_RELAXED);

  stacks_.reserve(threads_);
  shared_.begin_block(grid.shared_bytes, target.shared_limit, grid.poison);
  for (unsigned first = 0; first < threads_; first += kLanes) {
    Warp& warp = warps_[first / kLanes];
    const unsigned lanes = threads_ - first < kLanes ? threads_ - first : kLanes;
    warp.present = warp.ready = lanes == kLanes ? kFullMask : bit(lanes) - 1;
    warp.at_barrier = warp.in_named = warp.in_collective = warp.converging = warp.exited = 0;
    warp.cursor = kLanes - 1;
    active_warps_ |= bit(first / kLanes);
  }
#ifdef SIMT_SANITIZER_THREAD
  if (only_reads()) return;
#endif
  begin_block(stacks_, threads_);
  for (unsigned thread = 0; thread < threads_; ++thread) {
    thread_indices_[thread] = thread_index(thread);
    addresses_[thread] = 0;
    name_thread(thread, index_, thread_indices_[thread]);
    start_context(contexts_[thread], stacks_.stack(thread), StackPool::usable(thread), fiber_main);
  }

  running_block = this;
  running_ = true;
  blockIdx = index_;
  blockDim = dim3(grid.threads);
  gridDim = dim3(grid.blocks);
  current_ = 0;
  enter(next_thread());
  before_switch(kScheduler, current_);
  switch_context(scheduler_, contexts_[current_]);
  after_switch(kScheduler);
  running_ = false;
  end_block(threads_);
  shared_.end_block();
  running_block = nullptr;
}

inline void Block::switch_threads(unsigned left, unsigned resumed) {
  before_switch(left, resumed);
  switch_context(contexts_[left], contexts_[resumed]);
  after_switch(left);
}

inline void Block::enter(unsigned thread) {
  current_ = thread;
  threadIdx = thread_indices_[thread];
  __atomic_store_n(&switches_, switches_ + 1, __ATOMIC_RELAXED);
}

void Block::make_ready(unsigned warp, std::uint32_t lanes) {
  if (lanes == 0) return;
  warps_[warp].ready |= lanes;
  active_warps_ |= bit(warp);
}

// The first set bit after `after`, cyclically; with a random schedule, any set bit with equal chances. `bits` is not 0.
inline unsigned Block::pick_bit(std::uint32_t bits, unsigned after) {
  if (random_ != 0) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    for (std::uint64_t skip = (random_ >> 32) % static_cast<unsigned>(__builtin_popcount(bits)); skip > 0; --skip)
      bits &= bits - 1;
    return static_cast<unsigned>(__builtin_ctz(bits));
  }
  const unsigned start = (after + 1) % 32;
  const std::uint32_t turned = bits >> start | bits << ((32 - start) % 32);
  return (static_cast<unsigned>(__builtin_ctz(turned)) + start) % 32;
}

inline unsigned Block::next_thread() {
  unsigned number = current_ / kLanes;
  if (random_ != 0 || warps_[number].ready == 0) {
    if (warps_[number].ready == 0 && warps_[number].converging != 0) release_converging(number);
    if (warps_[number].ready == 0) active_warps_ &= ~bit(number);
    if (active_warps_ == 0) fail_stuck();
    if (random_ != 0 || warps_[number].ready == 0) number = pick_bit(active_warps_, number);
    if (warps_[number].ready == 0) release_converging(number);
  }
  Warp& warp = warps_[number];
  const unsigned lane = pick_bit(warp.ready, warp.cursor);
  warp.ready &= ~bit(lane);
  warp.cursor = lane;
  if (warp.ready == 0 && warp.converging == 0) active_warps_ &= ~bit(number);
  return number * kLanes + lane;
}

void Block::suspend() {
  const unsigned left = current_;
  const unsigned next = next_thread();
  if (next == left) return;
  enter(next);
  switch_threads(left, next);
}

void Block::fiber_main() {
  Block& block = *running_block;
  block.after_switch(block.current_);
  block.inside_ = false;
  block.grid_->kernel->call(block.grid_->arguments);
  block.exit_thread();
}

void Block::exit_thread() {
  inside_ = true;
  before_effect();
  Warp& warp = warps_[current_ / kLanes];
  warp.exited |= bit(lane());
  if (warp.in_collective != 0) fail_on_exit_from_collective(warp, lane());
  const unsigned left = current_;
  end_thread(left);
  if (--live_ == 0) {
    before_switch(left, kScheduler);
    switch_context(contexts_[left], scheduler_);
  } else {
    if (arrived_ == live_ && barrier_uniform_) release_barrier();
    if (warp.in_named != 0) count_named(left / kLanes);
    enter(next_thread());
    switch_threads(left, current_);
  }
  __builtin_unreachable();
}

unsigned Block::barrier(Barrier kind, bool predicate, Site site) {
  before_effect();
  Warp& warp = warps_[current_ / kLanes];
  warp.slots[lane()].collective = &barriers[static_cast<unsigned>(kind)];
  warp.slots[lane()].site = site;
  if (arrived_ == 0) {
    barrier_kind_ = kind;
    barrier_site_ = site;
    barrier_count_ = 0;
  } else if (kind != barrier_kind_ || !same_site(site, barrier_site_)) {
    barrier_uniform_ = false;  // never released: fail_stuck reports it once all threads wait
  }
  barrier_count_ += predicate ? 1 : 0;
  ++arrived_;
  const unsigned turn = arrive(current_);
  warp.at_barrier |= bit(lane());
  if (arrived_ == live_ && barrier_uniform_) {
    release_barrier();
    warp.ready &= ~bit(lane());
  } else {
    suspend();
  }
  leave(current_, turn);
  return barrier_result_;
}

void Block::release_barrier() {
  barrier_result_ = barrier_kind_ == Barrier::all ? (barrier_count_ == arrived_ ? 1 : 0) : barrier_count_;
  arrived_ = 0;
  for (unsigned number = 0; number * kLanes < threads_; ++number) {
    make_ready(number, warps_[number].at_barrier);
    warps_[number].at_barrier = 0;
  }
}

std::uint64_t Block::collective(const Collective& collective, std::uint32_t mask, const LaneSlot& brought) {
  before_effect();
  Warp& warp = warps_[current_ / kLanes];
  const unsigned self = lane();
  const Site& site = brought.site;
  if ((mask & bit(self)) == 0)
    fail_in_block(Failure::collective,
                  "thread %u (lane %u) called %s at %s:%d with mask 0x%08x, which does not name it", current_,
                  self, collective.name, site.file, site.line, mask);
  // A mask may name lanes beyond the block's last thread, as the default mask does; they take no part.
  const std::uint32_t lanes = mask & warp.present;
  if ((lanes & warp.exited) != 0)
    fail_in_block(Failure::collective,
                  "thread %u (lane %u) called %s at %s:%d with mask 0x%08x, but lane %d of that mask has exited",
                  current_, self, collective.name, site.file, site.line, mask, __builtin_ctz(lanes & warp.exited));
  if (collective.whole_warp && (lanes != kFullMask))
    fail_in_block(Failure::collective, "%s at %s:%d needs the 32 lanes of a warp; warp %u has lanes 0x%08x",
                  collective.name, site.file, site.line, current_ / kLanes, lanes);

  LaneSlot& slot = warp.slots[self];
  slot = brought;
  slot.collective = &collective;
  slot.mask = mask;
  if (warp.in_collective == 0) {
    warp.uniform = true;
    warp.first_collective = &collective;
    warp.first_mask = mask;
  } else if (warp.first_collective != &collective || warp.first_mask != mask) {
    warp.uniform = false;
  }
  warp.in_collective |= bit(self);

  bool complete = (warp.in_collective & lanes) == lanes;
  if (complete && !warp.uniform)
    for (unsigned other = 0; other < kLanes; ++other)
      if ((lanes & bit(other)) != 0 &&
          (warp.slots[other].mask != mask || warp.slots[other].collective != &collective))
        complete = false;
  if (complete) {
    collective.complete(warp.slots, lanes);
    warp.in_collective &= ~lanes;
    make_ready(current_ / kLanes, lanes & ~bit(self));
  } else {
    suspend();
  }
  return slot.result;
}

std::uint32_t Block::converge(Site site, bool whole) {
  before_effect();
  Warp& warp = warps_[current_ / kLanes];
  LaneSlot& slot = warp.slots[lane()];
  slot.site = site;
  slot.whole = whole;
  warp.converging |= bit(lane());
  active_warps_ |= bit(current_ / kLanes);
  suspend();
  return static_cast<std::uint32_t>(slot.result);
}

// Some of `lanes`, at random; not all, unless there is only one.
std::uint32_t Block::part_of(std::uint32_t lanes) {
  std::uint32_t part = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    if ((random_ >> 32 & 1) != 0) part |= rest & (~rest + 1);
  }
  return part == 0 || part == lanes ? lanes & (~lanes + 1) : part;
}

// No lane of the warp can run. The lanes that called __activemask at one call are the active ones of a converged warp.
void Block::release_converging(unsigned number) {
  Warp& warp = warps_[number];
  const LaneSlot& first = warp.slots[__builtin_ctz(warp.converging)];
  const Site site = first.site;
  const bool whole = first.whole;
  std::uint32_t together = 0;
  for (unsigned other = 0; other < kLanes; ++other)
    if ((warp.converging & bit(other)) != 0 && same_site(warp.slots[other].site, site)) together |= bit(other);
  // A GPU may run the lanes of a branch in parts. With a random schedule it does, where other lanes are elsewhere or
  // have returned. A coalesced group stays whole: its size is its own, and few programs expect several.
  if (random_ != 0 && !whole && together != warp.present) together = part_of(together);
  for (unsigned other = 0; other < kLanes; ++other)
    if ((together & bit(other)) != 0) warp.slots[other].result = together;
  warp.converging &= ~together;
  make_ready(number, together);
}

void Block::after_atomic(bool contended, std::uint64_t address) {
  before_effect();
  constexpr unsigned period = 64;
  if (!contended && ++atomics_ % period != 0) return;
  addresses_[current_] = address;
  yield();
}

void Block::interrupt(std::uint64_t at) {
  if (!running_ || inside_) return;
  inside_ = true;
  addresses_[current_] = at;
  allow_interrupts();  // the signal handler that called may not return for long
  yield();
  inside_ = false;
}

void Block::yield() {
  __atomic_store_n(&yields_, yields_ + 1, __ATOMIC_RELAXED);
  const unsigned left = current_;
  make_ready(left / kLanes, bit(lane()));
  // Prefer another warp: a spinning lane must not keep its own warp scheduled forever.
  const std::uint32_t others = active_warps_ & ~bit(left / kLanes);
  if (others != 0) current_ = pick_bit(others, left / kLanes) * kLanes;
  const unsigned next = next_thread();
  if (next == left) {
    current_ = left;
    return;
  }
  enter(next);
  switch_threads(left, next);
}

}  // namespace simt
