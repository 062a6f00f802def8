// Barriers, and the instructions of a warp.
#pragma once

#include <ctime>

#include "../include/simt_sync.h"
#include "words.h"

namespace ptx {

using simt::Site;

PTX_INLINE u32 block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
PTX_INLINE u32 warp_id() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32; }
PTX_INLINE u32 warps_of_block() { return (block_threads() + 31) / 32; }
PTX_INLINE u64 cycles() { return __builtin_ia32_rdtsc(); }
inline u64 nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<u64>(now.tv_sec) * 1000000000ULL + static_cast<u64>(now.tv_nsec);
}

PTX_INLINE void fence() { ::__threadfence(); }
PTX_INLINE void pause(u32) { simt::after_atomic(true); }

// Barrier 0 without a count is that of __syncthreads.
inline void barrier(u32 number, u32 threads, bool waits, bool is_counted, Site site) {
  if (number == 0 && waits && (!is_counted || threads == block_threads()))
    simt::block_barrier(simt::Barrier::sync, false, site);
  else
    simt::named_barrier({number, threads, waits, site});
}

enum class Shuffle { idx, up, down, bfly };
struct Moved {
  u32 value;
  bool is_inside;
};

// The source lane by the pseudocode of shfl.sync in the PTX ISA. Outside of its segment a lane reads itself.
inline Moved shuffled(Shuffle kind, u32 value, u32 by, u32 bounds, u32 mask, Site site) {
  const u32 lane = simt::current_lane(), segment = bounds >> 8 & 31, clamp = bounds & 31;
  const u32 most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  by &= 31;
  s32 source = 0;
  bool is_inside = false;
  switch (kind) {
    case Shuffle::up: source = static_cast<s32>(lane) - static_cast<s32>(by); is_inside = source >= static_cast<s32>(most); break;
    case Shuffle::down: source = static_cast<s32>(lane + by); is_inside = source <= static_cast<s32>(most); break;
    case Shuffle::bfly: source = static_cast<s32>(lane ^ by); is_inside = source <= static_cast<s32>(most); break;
    case Shuffle::idx: source = static_cast<s32>(least | (by & ~segment)); is_inside = source <= static_cast<s32>(most); break;
  }
  if (!is_inside) source = static_cast<s32>(lane);
  static constexpr std::uint64_t poison[] = {0x7FA07FA0, 0x7BFF7BFF, 0xFBFFFBFF};
  const std::uint64_t found = simt::shuffle(simt::Shuffle::index, mask, value, static_cast<unsigned>(source), 32, poison, site);
  return {static_cast<u32>(found), is_inside};
}

inline bool votes_agree(bool vote, u32 mask, Site site) {
  const u32 yes = static_cast<u32>(simt::vote(simt::Vote::ballot, mask, vote, site));
  return yes == 0 || yes == static_cast<u32>(simt::vote(simt::Vote::ballot, mask, 1, site));
}
inline u32 matching(u64 value, u32 mask, Site site) {
  const u32 alike = static_cast<u32>(simt::vote(simt::Vote::match, mask, value, site));
  return alike == static_cast<u32>(simt::vote(simt::Vote::ballot, mask, 1, site)) ? alike : 0;
}
inline u32 elected(u32 mask, Site site) {
  return static_cast<u32>(__builtin_ctz(static_cast<u32>(simt::vote(simt::Vote::ballot, mask, 1, site))));
}

enum class Reduction { add_, min_, max_, and_, or_, xor_ };
template <Reduction Kind, typename T>
inline T reduced(T value, u32 mask, Site site) {
  u32 lanes = static_cast<u32>(simt::vote(simt::Vote::ballot, mask, 1, site));
  static constexpr std::uint64_t poison[] = {0, 0, 0};
  T result{};
  bool is_first = true;
  for (; lanes != 0; lanes &= lanes - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(lanes));
    const T other = static_cast<T>(simt::shuffle(simt::Shuffle::index, mask, static_cast<u32>(value), lane, 32, poison, site));
    if (is_first) result = other;
    else if (Kind == Reduction::add_) result = static_cast<T>(static_cast<u32>(result) + static_cast<u32>(other));
    else if (Kind == Reduction::min_) result = other < result ? other : result;
    else if (Kind == Reduction::max_) result = other > result ? other : result;
    else if (Kind == Reduction::and_) result = result & other;
    else if (Kind == Reduction::or_) result = result | other;
    else result = result ^ other;
    is_first = false;
  }
  return result;
}

}  // namespace ptx
