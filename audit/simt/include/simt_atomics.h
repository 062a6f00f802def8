// Atomics are real, because blocks run on several OS threads. Each returns the old value.
#pragma once

#include "../device.h"

namespace simt {

template <typename T>
inline bool compare_exchange(T* address, T* old, T value) {
#ifdef SIMT_SANITIZER_THREAD
  // As on a GPU, an atomic without a fence publishes no earlier write.
  if (!has_fenced())
    return __atomic_compare_exchange_n(address, old, value, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
#endif
  return __atomic_compare_exchange_n(address, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

template <typename T, typename Change>
inline T atomic_update(T* address, Change change) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (!compare_exchange(address, &old, change(old))) {
  }
  after_atomic(false);
  return old;
}

// Floats are exchanged as integers with the same bits.
template <typename Float, typename Word, typename Change>
inline Float atomic_update_float(Float* address, Change change) {
  const Word old = atomic_update(reinterpret_cast<Word*>(address), [&](Word bits) {
    Float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    value = change(value);
    __builtin_memcpy(&bits, &value, sizeof(value));
    return bits;
  });
  Float value;
  __builtin_memcpy(&value, &old, sizeof(value));
  return value;
}

}  // namespace simt

#define SIMT_ATOMICS(T)                                                                                          \
  inline T atomicAdd(T* p, T v) { return simt::atomic_update(p, [=](T o) { return static_cast<T>(o + v); }); }   \
  inline T atomicMin(T* p, T v) { return simt::atomic_update(p, [=](T o) { return v < o ? v : o; }); }           \
  inline T atomicMax(T* p, T v) { return simt::atomic_update(p, [=](T o) { return v > o ? v : o; }); }           \
  inline T atomicAnd(T* p, T v) { return simt::atomic_update(p, [=](T o) { return static_cast<T>(o & v); }); }   \
  inline T atomicOr(T* p, T v) { return simt::atomic_update(p, [=](T o) { return static_cast<T>(o | v); }); }    \
  inline T atomicXor(T* p, T v) { return simt::atomic_update(p, [=](T o) { return static_cast<T>(o ^ v); }); }   \
  inline T atomicExch(T* p, T v) { return simt::atomic_update(p, [=](T) { return v; }); }                        \
  inline T atomicCAS(T* p, T compare, T v) {                                                                     \
    T old = compare;                                                                                             \
    const bool swapped = simt::compare_exchange(p, &old, v);                                                     \
    simt::after_atomic(!swapped);                                                                                \
    return old;                                                                                                  \
  }

SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned int)
SIMT_ATOMICS(long long)
SIMT_ATOMICS(unsigned long long)

#undef SIMT_ATOMICS

inline int atomicSub(int* p, int v) { return atomicAdd(p, -v); }
inline unsigned int atomicSub(unsigned int* p, unsigned int v) { return atomicAdd(p, 0U - v); }
inline unsigned int atomicInc(unsigned int* p, unsigned int last) {
  return simt::atomic_update(p, [=](unsigned int o) { return o >= last ? 0U : o + 1; });
}
inline unsigned int atomicDec(unsigned int* p, unsigned int last) {
  return simt::atomic_update(p, [=](unsigned int o) { return o == 0 || o > last ? last : o - 1; });
}
inline float atomicAdd(float* p, float v) {
  return simt::atomic_update_float<float, unsigned int>(p, [=](float o) { return o + v; });
}
inline double atomicAdd(double* p, double v) {
  return simt::atomic_update_float<double, unsigned long long>(p, [=](double o) { return o + v; });
}
inline float atomicExch(float* p, float v) {
  return simt::atomic_update_float<float, unsigned int>(p, [=](float) { return v; });
}
