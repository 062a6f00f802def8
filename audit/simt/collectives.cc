// Warp collectives, and the functions of device.h that forward to the running block.
#include "block.h"

namespace simt {
namespace {

constexpr std::uint32_t bit(unsigned lane) { return 1U << lane; }

template <typename Each>
void for_lanes(std::uint32_t lanes, Each each) {
  for (; lanes != 0; lanes &= lanes - 1) each(static_cast<unsigned>(__builtin_ctz(lanes)));
}

void complete_shuffle(LaneSlot* slots, std::uint32_t lanes) {
  for_lanes(lanes, [&](unsigned lane) {
    const unsigned source = slots[lane].argument;
    if ((lanes & bit(source)) != 0) slots[lane].result = slots[source].value;  // otherwise it keeps its poison
  });
}

std::uint32_t ballot(const LaneSlot* slots, std::uint32_t lanes) {
  std::uint32_t votes = 0;
  for_lanes(lanes, [&](unsigned lane) { votes |= slots[lane].value != 0 ? bit(lane) : 0; });
  return votes;
}

void give_all(LaneSlot* slots, std::uint32_t lanes, std::uint64_t result) {
  for_lanes(lanes, [&](unsigned lane) { slots[lane].result = result; });
}

void complete_ballot(LaneSlot* slots, std::uint32_t lanes) { give_all(slots, lanes, ballot(slots, lanes)); }
void complete_any(LaneSlot* slots, std::uint32_t lanes) { give_all(slots, lanes, ballot(slots, lanes) != 0); }
void complete_all(LaneSlot* slots, std::uint32_t lanes) { give_all(slots, lanes, ballot(slots, lanes) == lanes); }
void complete_match(LaneSlot* slots, std::uint32_t lanes) {
  for_lanes(lanes, [&](unsigned lane) {
    std::uint32_t equal = 0;
    for_lanes(lanes, [&](unsigned other) { equal |= slots[other].value == slots[lane].value ? bit(other) : 0; });
    slots[lane].result = equal;
  });
}
void complete_synchronise(LaneSlot*, std::uint32_t) {}

constexpr Collective shuffles[] = {{"__shfl_sync", false, complete_shuffle},
                                   {"__shfl_up_sync", false, complete_shuffle},
                                   {"__shfl_down_sync", false, complete_shuffle},
                                   {"__shfl_xor_sync", false, complete_shuffle}};
constexpr Collective votes[] = {{"__ballot_sync", false, complete_ballot},
                                {"__any_sync", false, complete_any},
                                {"__all_sync", false, complete_all},
                                {"__match_any_sync", false, complete_match},
                                {"__syncwarp", false, complete_synchronise}};

// The lane that `lane` reads, by the PTX ISA's shfl.sync. Outside its segment a lane reads itself.
unsigned source_lane(Shuffle kind, unsigned lane, unsigned argument, unsigned width) {
  const unsigned first = lane & ~(width - 1);
  const unsigned last = first + width - 1;
  argument &= 31;
  switch (kind) {
    case Shuffle::index: return first | (argument & (width - 1));
    case Shuffle::up: return lane >= first + argument ? lane - argument : lane;
    case Shuffle::down: return lane + argument <= last ? lane + argument : lane;
    case Shuffle::exchange: return (lane ^ argument) <= last ? lane ^ argument : lane;
  }
  return lane;
}

}  // namespace

unsigned current_lane() { return current_block()->lane(); }

void* shared_object(const SharedObject& object) {
  Block& block = *current_block();
  const Block::Inside inside(block);
  return block.shared().find_or_create(object);
}

void* dynamic_shared(unsigned alignment) { return current_block()->shared().dynamic(alignment); }

unsigned block_barrier(Barrier kind, bool predicate, Site site) {
  const Block::Inside inside(*current_block());
  return current_block()->barrier(kind, predicate, site);
}

std::uint64_t join_collective(const Collective& collective, std::uint32_t mask, const LaneSlot& brought) {
  const Block::Inside inside(*current_block());
  return current_block()->collective(collective, mask, brought);
}

std::uint32_t active_mask(Site site, bool whole) {
  const Block::Inside inside(*current_block());
  return current_block()->converge(site, whole);
}

void trap(Site site) {
  if (Block* block = current_block()) block->before_effect();
  char where[512];
  describe_current_thread(where, sizeof(where));
  fail(Failure::assertion, "%s%s:%d: __trap()", where, site.file, site.line);
}

void exceeded_launch_bounds(Site site, unsigned threads) {
  const Grid& grid = current_block()->grid();
  fail(Failure::launch, "kernel %s: expected at most %u threads a block (__launch_bounds__ at %s:%d), but the launch has "
       "%u; a GPU refuses it", grid.kernel->name, threads, site.file, site.line,
       grid.threads.x * grid.threads.y * grid.threads.z);
}

void after_atomic(bool contended) {
  Block* const block = current_block();
  if (block == nullptr) return;
  const Block::Inside inside(*block);
  block->after_atomic(contended, reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1);
}

std::uint64_t shuffle(Shuffle kind, std::uint32_t mask, std::uint64_t value, unsigned argument, int width,
                      const std::uint64_t (&poison)[kPoisonKinds], Site site) {
  Block& block = *current_block();
  const Block::Inside inside(block);
  const Collective& collective = shuffles[static_cast<unsigned>(kind)];
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    fail_in_block(Failure::collective, "%s at %s:%d has width %d; expected a power of two up to 32",
                  collective.name, site.file, site.line, width);
  LaneSlot slot{};
  slot.argument = source_lane(kind, block.lane(), argument, static_cast<unsigned>(width));
  slot.value = value;
  slot.result = poison[block.grid().poison];
  slot.site = site;
  return block.collective(collective, mask, slot);
}

std::uint64_t vote(Vote kind, std::uint32_t mask, std::uint64_t value, Site site) {
  const Block::Inside inside(*current_block());
  LaneSlot slot{};
  slot.value = value;
  slot.site = site;
#ifdef SIMT_SANITIZER_THREAD
  if (kind == Vote::synchronise) {
    Block& block = *current_block();
    block.before_effect();
    const unsigned turn = block.watch().arrive_in_warp(block.thread(), mask);
    const std::uint64_t result = block.collective(votes[static_cast<unsigned>(kind)], mask, slot);
    block.watch().leave_in_warp(block.thread(), mask, turn);
    return result;
  }
#endif
  return current_block()->collective(votes[static_cast<unsigned>(kind)], mask, slot);
}

#ifdef SIMT_SANITIZER_THREAD
void memory_fence() {
  Block& block = *current_block();
  block.before_effect();
  block.watch().fence(block.thread());
}

bool has_fenced() {
  Block& block = *current_block();
  block.before_effect();
  return block.watch().has_fenced(block.thread());
}
#endif

}  // namespace simt
