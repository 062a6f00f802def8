// Numbered barriers with a thread count, as in PTX: a warp arrives when all of its lanes that have not exited are at
// the same call.
#include "block.h"

namespace simt {
namespace {

constexpr std::uint32_t kWholeWarp = 0xFFFFFFFF;

constexpr std::uint32_t bit(unsigned lane) { return 1U << lane; }

bool same_call(const NamedCall& a, const NamedCall& b) {
  return a.id == b.id && a.threads == b.threads && a.waits == b.waits && a.site.line == b.site.line &&
         (a.site.file == b.site.file || __builtin_strcmp(a.site.file, b.site.file) == 0);
}

}  // namespace

void named_barrier(const NamedCall& call) {
  const Block::Inside inside(*current_block());
  current_block()->named_barrier(call);
}

void Block::named_barrier(const NamedCall& call) {
  before_effect();
  const unsigned number = current_ / kLanes;
  Warp& warp = warps_[number];
  if (call.id < 1 || call.id >= kNamedBarriers)
    fail_in_named(call, "; expected a barrier number of 1 to %u", kNamedBarriers - 1);
  if (call.threads == 0 || call.threads % kLanes != 0 || call.threads > kMaxThreads)
    fail_in_named(call, " for %u threads; expected a multiple of %u up to %u", call.threads, kLanes, kMaxThreads);
  if (warp.in_named == 0)
    warp.named = call;
  else if (!same_call(call, warp.named))
    fail_in_named(call, ", but lane %d of its warp called %s %u at %s:%d; all lanes of a warp must make the same call",
                  __builtin_ctz(warp.in_named), warp.named.name(), warp.named.id, warp.named.site.file,
                  warp.named.site.line);
  publish(current_);
  warp.in_named |= bit(lane());
  count_named(number);
  if ((warp.in_named & bit(lane())) != 0)
    suspend();
  else
    warp.ready &= ~bit(lane());  // it continues now, with the other lanes ready
  if (call.waits) receive(current_);
}

// The warp arrives when none of its lanes is elsewhere.
void Block::count_named(unsigned number) {
  Warp& warp = warps_[number];
  if (warp.in_named == 0 || warp.in_named != (warp.present & ~warp.exited)) return;
  const NamedCall& call = warp.named;
  if (call.object != nullptr && warp.in_named != kWholeWarp)
    fail_in_named(call, "; some lanes of its warp have exited or do not exist, and an mbarrier needs their arrivals");
  NamedBarrier& barrier = named_[call.id];
  if (barrier.used && barrier.object != call.object)
    fail_in_named(call, ", whose number another barrier uses at %s:%d", barrier.site.file, barrier.site.line);
  if (barrier.arrived == 0)
    barrier = {call.threads, 0, 0, call.site, call.object, true};
  else if (call.threads != barrier.threads)
    fail_in_named(call, " for %u threads, but the first arrival at %s:%d expects %u", call.threads, barrier.site.file,
                  barrier.site.line, barrier.threads);
  barrier.arrived += kLanes;
  deliver(number, call.id);
  if (call.waits)
    barrier.waiting |= bit(number);
  else
    leave_named(number);
  if (barrier.arrived < barrier.threads) return;
  for (std::uint32_t waiting = barrier.waiting; waiting != 0; waiting &= waiting - 1) {
    const unsigned other = static_cast<unsigned>(__builtin_ctz(waiting));
    promise(other, warps_[other].in_named, call.id);
    leave_named(other);
  }
  end_generation(call.id);
  barrier.arrived = 0;
}

void Block::leave_named(unsigned number) {
  make_ready(number, warps_[number].in_named);
  warps_[number].in_named = 0;
}

}  // namespace simt
