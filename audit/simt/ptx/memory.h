// Atomics, copies, and what the state spaces of PTX mean here.
//
// The addresses of all state spaces are real. Shared memory lies below 4 GiB, so that its addresses fit into the 32 bits
// that kernels keep them in.
#pragma once

#include <vector>

#include "../include/simt_atomics.h"
#include "../ptx_support.h"
#include "floating.h"

namespace ptx {

enum class Meaning { relaxed, acquire, release, acq_rel };

// An atomic that releases publishes earlier writes; a relaxed one does so after a fence only.
template <typename Word, Meaning Order>
PTX_INLINE bool compare_exchange(Word* address, Word* old, Word value) {
  if constexpr (Order == Meaning::release || Order == Meaning::acq_rel)
    return __atomic_compare_exchange_n(address, old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  else
    return simt::compare_exchange(address, old, value);
}

template <unsigned Bytes>
struct WordOf;
template <> struct WordOf<2> { typedef u16 type; };
template <> struct WordOf<4> { typedef u32 type; };
template <> struct WordOf<8> { typedef u64 type; };

template <typename T>
PTX_INLINE T value_of(typename WordOf<sizeof(T)>::type word) {
  T value;
  __builtin_memcpy(&value, &word, sizeof(T));
  return value;
}

// Replaces *address by change(old, b), and returns old.
template <typename T, Meaning Order, typename Change>
inline T changed(u64 address, T b, Change change) {
  typedef typename WordOf<sizeof(T)>::type Word;
  Word* const at = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!compare_exchange<Word, Order>(at, &old, bits(change(value_of<T>(old), b)))) {
  }
  simt::after_atomic(false);
  return value_of<T>(old);
}

template <typename Word, Meaning Order>
inline Word exchange_if(u64 address, Word expected, Word value) {
  Word old = expected;
  const bool swapped = compare_exchange<Word, Order>(reinterpret_cast<Word*>(address), &old, value);
  simt::after_atomic(!swapped);
  return old;
}

template <typename Word>
PTX_INLINE Word load_acquire(u64 address) {
  const Word value = __atomic_load_n(reinterpret_cast<Word*>(address), __ATOMIC_ACQUIRE);
  simt::after_atomic(false);
  return value;
}
template <typename Word>
PTX_INLINE void store_release(u64 address, Word value) {
  __atomic_store_n(reinterpret_cast<Word*>(address), value, __ATOMIC_RELEASE);
}

template <typename Tag = void>  // a template, so that only a program that calls it pays
PTX_INLINE void read_only(u64 address, unsigned bytes, simt::Site site) {
  static_cast<void>(&simt::loads_read_only<Tag>);
  simt::read_only_load(reinterpret_cast<const void*>(address), bytes, site);
}

PTX_INLINE bool is_in_shared(u64 address) { return simt::is_shared(reinterpret_cast<const void*>(address)); }
PTX_INLINE bool is_in_local(u64 address) { return simt::is_local(reinterpret_cast<const void*>(address)); }
PTX_INLINE bool is_in_global(u64 address) { return !is_in_shared(address) && !is_in_local(address); }
PTX_INLINE bool is_in_const(u64) { return false; }

// A barrier in shared memory that counts arrivals (chapter 9.7.13.15): the count of a phase, the arrivals still due, the
// bytes still due, and the phase's number.
class PhaseBarrier {
 public:
  static PhaseBarrier& at(u64 address) { return *reinterpret_cast<PhaseBarrier*>(address); }
  void start(u32 count) { __atomic_store_n(&word_, packed(count, count, 0, 0), __ATOMIC_RELEASE); }

  // Returns the state in which the arrival found the barrier.
  u64 arrive(u32 count) {
    return change([=](u64 word) { return completed(expected(word), pending(word) - count, bytes(word), phase(word)); });
  }
  void expect(u32 count) {
    change([=](u64 word) { return packed(expected(word), pending(word), bytes(word) + count, phase(word)); });
  }
  void receive(u32 count) {
    change([=](u64 word) { return completed(expected(word), pending(word), bytes(word) - count, phase(word)); });
  }
  bool has_left(u64 state) { return waited(phase(now()) != phase(state)); }
  bool has_passed(u32 parity) { return waited((phase(now()) & 1) != (parity & 1)); }

 private:
  static u64 packed(u64 expected, u64 pending, u64 bytes, u64 phase) {
    return (expected & 0xFFFFF) | (pending & 0xFFFFF) << 20 | (bytes & 0x1FFFFF) << 40 | (phase & 7) << 61;
  }
  static u64 expected(u64 word) { return word & 0xFFFFF; }
  static u64 pending(u64 word) { return word >> 20 & 0xFFFFF; }
  static u64 bytes(u64 word) { return word >> 40 & 0x1FFFFF; }
  static u64 phase(u64 word) { return word >> 61; }
  static u64 completed(u64 expected, u64 pending, u64 bytes, u64 phase) {
    const bool is_over = (pending & 0xFFFFF) == 0 && (bytes & 0x1FFFFF) == 0;
    return is_over ? packed(expected, expected, 0, phase + 1) : packed(expected, pending, bytes, phase);
  }
  u64 now() { return __atomic_load_n(&word_, __ATOMIC_ACQUIRE); }
  template <typename Change>
  u64 change(Change changed) {
    u64 old = __atomic_load_n(&word_, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&word_, &old, changed(old), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return old;
  }
  static bool waited(bool is_over) {
    if (!is_over) simt::after_atomic(true);
    return is_over;
  }

  u64 word_;
};

// A thread's cp.async copies. They happen at the wait, as late as a GPU may, and the destination holds NaN until then,
// so that a missing wait shows.
class AsyncCopies {
 public:
  AsyncCopies() { simt::set_thread_data(this); }
  static AsyncCopies& of_thread() { return *static_cast<AsyncCopies*>(simt::thread_data()); }

  void add(u64 to, u64 from, u32 size, u32 read, simt::Site site) {
    if ((to | from) % size != 0) simt::misaligned((to % size != 0 ? to : from), size, site);
    for (u32 i = 0; i < size; i += 4) *reinterpret_cast<u32*>(to + i) = 0x7F7F7F7F;
    open_.push_back({to, from, size, read});
  }
  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  void wait(u32 most) {
    std::size_t done = 0;
    while (groups_.size() - done > most) finish(groups_[done++]);
    groups_.erase(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(done));
  }
  void wait_all() {
    commit();
    wait(0);
  }
  void arrive_at(u64 barrier, bool is_counted) {
    for (std::vector<Copy>& group : groups_) finish(group);
    finish(open_);
    if (is_counted) PhaseBarrier::at(barrier).arrive(1);
  }

 private:
  struct Copy {
    u64 to, from;
    u32 size, read;
  };
  static void finish(std::vector<Copy>& copies) {
    for (const Copy& copy : copies) {
      if (copy.read == copy.size) {
        for (u32 i = 0; i < copy.size; i += 4) *reinterpret_cast<u32*>(copy.to + i) = *reinterpret_cast<const u32*>(copy.from + i);
      } else {
        for (u32 i = 0; i < copy.size; ++i)
          *reinterpret_cast<u8*>(copy.to + i) = i < copy.read ? *reinterpret_cast<const u8*>(copy.from + i) : 0;
      }
    }
    copies.clear();
  }

  std::vector<Copy> open_;
  std::vector<std::vector<Copy>> groups_;
};

}  // namespace ptx
