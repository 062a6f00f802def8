// Reports uninitialised reads where they happen. Memcheck alone reports them late, when a branch or a system call
// depends on them. So the kernels are compiled with ThreadSanitizer's instrumentation, whose callbacks are defined
// here: each load from shared or global memory queries memcheck. Reported bytes then count as written, so that later
// uses do not report them again.
#include "sanitizers.h"

#ifdef SIMT_SANITIZER_VALGRIND

#include <cstddef>

namespace {

// A thread's own stack is left to memcheck, because copies of structs may include members that nobody uses.
inline __attribute__((always_inline)) void check(const void* address, std::size_t bytes) {
  if (simt::is_stack(address)) return;
  if (VALGRIND_CHECK_MEM_IS_DEFINED(address, bytes) != 0)
    (void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(address, bytes);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

void __tsan_read1(void* p) { check(p, 1); }
void __tsan_read2(void* p) { check(p, 2); }
void __tsan_read4(void* p) { check(p, 4); }
void __tsan_read8(void* p) { check(p, 8); }
void __tsan_read16(void* p) { check(p, 16); }
void __tsan_unaligned_read2(void* p) { check(p, 2); }
void __tsan_unaligned_read4(void* p) { check(p, 4); }
void __tsan_unaligned_read8(void* p) { check(p, 8); }
void __tsan_unaligned_read16(void* p) { check(p, 16); }
void __tsan_read_range(void* p, unsigned long bytes) { check(p, bytes); }

void __tsan_write1(void*) {}
void __tsan_write2(void*) {}
void __tsan_write4(void*) {}
void __tsan_write8(void*) {}
void __tsan_write16(void*) {}
void __tsan_unaligned_write2(void*) {}
void __tsan_unaligned_write4(void*) {}
void __tsan_unaligned_write8(void*) {}
void __tsan_unaligned_write16(void*) {}
void __tsan_write_range(void*, unsigned long) {}

// The atomics of simt_atomics.h. Their orders are the strongest here: one thread runs at a time.
unsigned __tsan_atomic32_load(const volatile unsigned* p, int) {
  check(const_cast<const unsigned*>(p), sizeof(*p));
  return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
unsigned long __tsan_atomic64_load(const volatile unsigned long* p, int) {
  check(const_cast<const unsigned long*>(p), sizeof(*p));
  return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
bool __tsan_atomic32_compare_exchange_strong(volatile unsigned* p, unsigned* old, unsigned value, int, int) {
  check(const_cast<unsigned*>(p), sizeof(*p));
  return __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
bool __tsan_atomic64_compare_exchange_strong(volatile unsigned long* p, unsigned long* old, unsigned long value, int,
                                             int) {
  check(const_cast<unsigned long*>(p), sizeof(*p));
  return __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
void __tsan_atomic_thread_fence(int) {}

}  // extern "C"

#endif
