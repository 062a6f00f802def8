// Barriers, shuffles and votes. The default arguments record the file and line of each call.
#pragma once

#include <type_traits>

#include "../device.h"

#define SIMT_HERE const char *simt_file = __builtin_FILE(), int simt_line = __builtin_LINE()

inline void __syncthreads(SIMT_HERE) {
  simt::block_barrier(simt::Barrier::sync, false, {simt_file, simt_line});
}
inline int __syncthreads_count(int predicate, SIMT_HERE) {
  return static_cast<int>(simt::block_barrier(simt::Barrier::count, predicate != 0, {simt_file, simt_line}));
}
inline int __syncthreads_and(int predicate, SIMT_HERE) {
  return simt::block_barrier(simt::Barrier::all, predicate != 0, {simt_file, simt_line}) != 0;
}
inline int __syncthreads_or(int predicate, SIMT_HERE) {
  return simt::block_barrier(simt::Barrier::any, predicate != 0, {simt_file, simt_line}) != 0;
}

inline void __syncwarp(unsigned mask = simt::kFullMask, SIMT_HERE) {
  simt::vote(simt::Vote::synchronise, mask, 0, {simt_file, simt_line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_HERE) {
  return static_cast<unsigned>(simt::vote(simt::Vote::ballot, mask, predicate != 0, {simt_file, simt_line}));
}
inline int __any_sync(unsigned mask, int predicate, SIMT_HERE) {
  return simt::vote(simt::Vote::any, mask, predicate != 0, {simt_file, simt_line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_HERE) {
  return simt::vote(simt::Vote::all, mask, predicate != 0, {simt_file, simt_line}) != 0;
}
// The lanes that are at this call when no other lane of the warp can continue, as in a converged warp.
inline unsigned __activemask(SIMT_HERE) { return simt::active_mask({simt_file, simt_line}); }

namespace simt {

// The result of a shuffle from a lane outside the mask, which CUDA leaves undefined, by kind: a signalling NaN of the
// width, then what no maximum and no minimum swallows both.
template <typename T>
struct LanePoison {
  static constexpr std::uint64_t nan = sizeof(T) == 8 ? 0x7FF400007FA00000ULL : sizeof(T) == 4 ? 0x7FA07FA0ULL : 0x7D007D00ULL;
  static constexpr std::uint64_t high = 0x7BFF7BFF7BFF7BFFULL;
  static constexpr bool is_unsigned = std::is_integral_v<T> && std::is_unsigned_v<T>;
  static constexpr std::uint64_t low = is_unsigned ? 0 : std::is_integral_v<T> ? ~high : high | 0x8000800080008000ULL;
  static constexpr std::uint64_t words[kPoisonKinds] = {nan, high, low};
};

template <typename T>
inline std::uint64_t to_word(T value) {
  static_assert(sizeof(T) <= 8, "warp collectives move values of at most 8 bytes");
  std::uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  return word;
}

template <typename T>
inline T shuffled(Shuffle kind, unsigned mask, T value, unsigned argument, int width, Site site) {
  const std::uint64_t word = shuffle(kind, mask, to_word(value), argument, width, LanePoison<T>::words, site);
  T result;
  __builtin_memcpy(&result, &word, sizeof(T));
  return result;
}

}  // namespace simt

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_HERE) {
  return simt::shuffled(simt::Shuffle::index, mask, value, static_cast<unsigned>(source), width,
                        {simt_file, simt_line});
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  return simt::shuffled(simt::Shuffle::up, mask, value, delta, width, {simt_file, simt_line});
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
  return simt::shuffled(simt::Shuffle::down, mask, value, delta, width, {simt_file, simt_line});
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_HERE) {
  return simt::shuffled(simt::Shuffle::exchange, mask, value, static_cast<unsigned>(lane_mask), width,
                        {simt_file, simt_line});
}
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, SIMT_HERE) {
  return static_cast<unsigned>(simt::vote(simt::Vote::match, mask, simt::to_word(value), {simt_file, simt_line}));
}

// Sets `*all_equal` if all lanes have the same value, and then returns the lanes; otherwise returns 0.
template <typename T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_equal, SIMT_HERE) {
  const unsigned alike = __match_any_sync(mask, value, simt_file, simt_line);
  *all_equal = alike == __ballot_sync(mask, 1, simt_file, simt_line) ? 1 : 0;
  return *all_equal != 0 ? alike : 0;
}

#define SIMT_REDUCE_SYNC(name, T, change)                                                      \
  inline T __reduce_##name##_sync(unsigned mask, T value, SIMT_HERE) {                         \
    unsigned lanes = __ballot_sync(mask, 1, simt_file, simt_line);                             \
    T a = __shfl_sync(mask, value, __builtin_ctz(lanes), 32, simt_file, simt_line);            \
    for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1) {                                 \
      const T b = __shfl_sync(mask, value, __builtin_ctz(lanes), 32, simt_file, simt_line);    \
      a = change;                                                                              \
    }                                                                                          \
    return a;                                                                                  \
  }

SIMT_REDUCE_SYNC(add, unsigned, a + b)
SIMT_REDUCE_SYNC(add, int, a + b)
SIMT_REDUCE_SYNC(min, unsigned, b < a ? b : a)
SIMT_REDUCE_SYNC(min, int, b < a ? b : a)
SIMT_REDUCE_SYNC(max, unsigned, b > a ? b : a)
SIMT_REDUCE_SYNC(max, int, b > a ? b : a)
SIMT_REDUCE_SYNC(and, unsigned, a & b)
SIMT_REDUCE_SYNC(or, unsigned, a | b)
SIMT_REDUCE_SYNC(xor, unsigned, a ^ b)

#undef SIMT_REDUCE_SYNC

#ifdef SIMT_SANITIZER_THREAD
inline void __threadfence() { simt::memory_fence(); }  // ThreadSanitizer does not model fences
#else
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { simt::after_atomic(true); }
[[noreturn]] inline void __trap(SIMT_HERE) { simt::trap({simt_file, simt_line}); }
