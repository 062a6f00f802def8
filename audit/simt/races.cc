// What ThreadSanitizer is told about the accesses of kernels, where CUDA differs from C++.
//
// Several threads that write one equal value to one place are no hazard, as in NVIDIA's racecheck. A write's value is
// known only after it, so each write waits here until the next access or call of its thread; nobody else runs in
// between. A report about two writes of which the later one changed nothing is dropped, and becomes a note in the
// program's report. ThreadSanitizer remembers the write all the same, so that a third one with another value is found.
//
// Volatile accesses of global memory are relaxed atomics (PTX ISA, memory consistency model). A thread that has called
// a fence publishes its earlier writes with each volatile write, and a volatile read receives them: a look-back
// through flags is no race. In shared memory volatile writes are plain ones until their thread has called a fence, so
// that a reduction without __syncwarp is found.
#include "block.h"

#ifdef SIMT_SANITIZER_THREAD

#include <cstdint>

namespace {

// Reads memory without a call: libtsan intercepts memcpy and memcmp, and would count them as accesses of the kernel's.
struct Word {
  std::uint64_t low, high;
};
template <typename T>
std::uint64_t read(const void* address) {
  T value;
  __builtin_memcpy(&value, address, sizeof(value));
  return value;
}
Word content(const void* address, unsigned bytes) {
  switch (bytes) {
    case 1: return {read<std::uint8_t>(address), 0};
    case 2: return {read<std::uint16_t>(address), 0};
    case 4: return {read<std::uint32_t>(address), 0};
    case 8: return {read<std::uint64_t>(address), 0};
    default:
      return {read<std::uint64_t>(address), read<std::uint64_t>(static_cast<const char*>(address) + 8)};
  }
}

struct PendingWrite {
  void* address;
  unsigned bytes;
  void* pc;
  Word before;
};

PendingWrite waiting;
// How often a report about a write of an equal value was dropped, by its site; a report takes ThreadSanitizer long.
constexpr unsigned kSites = 1024, kDropped = 256;
struct WriteSite {
  void* pc;
  unsigned dropped;
};
WriteSite sites[kSites];
WriteSite& site_of(void* pc) { return sites[(reinterpret_cast<std::uint64_t>(pc) * 0x9E3779B97F4A7C15ULL) >> 54]; }

// The pairs of sites that were reported. ThreadSanitizer's own memory of them is switched off, because it would take a
// dropped report for one that was printed.
constexpr unsigned kPairs = 4096;
void* pairs[kPairs][2];

bool is_known(void* a, void* b) {
  std::uint64_t at = (reinterpret_cast<std::uint64_t>(a) * 31 + reinterpret_cast<std::uint64_t>(b)) * 0x9E3779B97F4A7C15ULL;
  at >>= 52;
  for (unsigned tried = 0; tried < kPairs; ++tried, at = (at + 1) % kPairs) {
    if (pairs[at][0] == a && pairs[at][1] == b) return true;
    if (pairs[at][0] != nullptr || pairs[at][1] != nullptr) continue;
    pairs[at][0] = a;
    pairs[at][1] = b;
    return false;
  }
  return true;
}

bool has_dropped = false;  // the first report about a site was
bool is_equal = false;     // while ThreadSanitizer is told of a write that changed nothing

}  // namespace

extern "C" {

unsigned char simt_pending = 0;
extern unsigned char simt_on_trial;

void __sanitizer_symbolize_pc(void* pc, const char* format, char* text, unsigned long size);
void __tsan_write1_pc(void* address, void* pc);
void __tsan_write2_pc(void* address, void* pc);
void __tsan_write4_pc(void* address, void* pc);
void __tsan_write8_pc(void* address, void* pc);
void __tsan_write16_pc(void* address, void* pc);
int __tsan_get_report_mop(void* report, unsigned long index, int* thread, void** address, int* size, int* is_write,
                          int* is_atomic, void** trace, unsigned long trace_size);

const char* __tsan_default_options() { return "suppress_equal_addresses=0:suppress_equal_stacks=0"; }

static void tell(void* address, unsigned bytes, void* pc) {
  switch (bytes) {
    case 1: return __tsan_write1_pc(address, pc);
    case 2: return __tsan_write2_pc(address, pc);
    case 4: return __tsan_write4_pc(address, pc);
    case 8: return __tsan_write8_pc(address, pc);
    default: return __tsan_write16_pc(address, pc);
  }
}

void simt_flush() {
  if (simt_pending == 0) return;
  simt_pending = 0;
  const Word now = content(waiting.address, waiting.bytes);
  is_equal = now.low == waiting.before.low && now.high == waiting.before.high;
  WriteSite& site = site_of(waiting.pc);
  if (!is_equal || site.pc != waiting.pc || site.dropped < kDropped)
    tell(waiting.address, waiting.bytes, waiting.pc);
  is_equal = false;
  if (!has_dropped) return;
  has_dropped = false;
  char where[1024] = "";
  __sanitizer_symbolize_pc(static_cast<char*>(waiting.pc) - 1, "%s:%l", where, sizeof(where));
  simt::report_line("note equal-write %s", where);
}

void simt_defer_write(void* address, unsigned bytes, void* pc) {
  simt_flush();
  if (simt::is_stack(address)) return tell(address, bytes, pc);
  waiting.address = address;
  waiting.bytes = bytes;
  waiting.pc = pc;
  waiting.before = content(address, bytes);
  simt_pending = 1;
}

void simt_volatile_read(void* address) {
  simt_flush();
  if (!simt::is_stack(address) && simt::current_block() != nullptr) simt::after_atomic(false);
}

// The order of an atomic write, or -1 for a plain write.
int simt_volatile_write(void* address) {
  simt_flush();
  simt::Block* const block = simt::current_block();
  if (block == nullptr || simt::is_stack(address)) return -1;
  if (simt::has_fenced()) return __ATOMIC_RELEASE;
  return block->shared().holds(address) ? -1 : __ATOMIC_RELAXED;
}

}  // extern "C"

namespace __tsan {

class ReportDesc;

// libtsan calls it for each report; true drops the report.
bool OnReport(const ReportDesc* report, bool suppressed) {
  int thread = 0, size = 0, is_write = 0, is_atomic = 0;
  void* address = nullptr;
  void* traces[2][1] = {{nullptr}, {nullptr}};
  for (const unsigned long side : {0UL, 1UL})
    __tsan_get_report_mop(const_cast<void*>(static_cast<const void*>(report)), side, &thread, &address, &size,
                          &is_write, &is_atomic, traces[side], 1);
  if (suppressed || (is_equal && is_write != 0 && is_atomic == 0)) {  // those of the earlier access
    WriteSite& site = site_of(waiting.pc);
    has_dropped = has_dropped || site.pc != waiting.pc;
    site = {waiting.pc, site.pc == waiting.pc ? site.dropped + 1 : 1};
    return true;
  }
  return is_known(traces[0][0], traces[1][0]);
}

}  // namespace __tsan

#if defined(__x86_64__)

// The linker redirects calls of these functions here (audit/compile/instrumentation.py). The caller's return address,
// which a report shows, stays on top of the stack.
#define SIMT_DEFERRED(bytes)                          \
  asm(".text\n"                                       \
      ".globl __wrap___tsan_write" #bytes "\n"        \
      ".type __wrap___tsan_write" #bytes ", @function\n" \
      "__wrap___tsan_write" #bytes ":\n"              \
      "  cmpb $0, simt_on_trial(%rip)\n"              \
      "  jne 1f\n"                                    \
      "2: movq (%rsp), %rdx\n"                        \
      "  movl $" #bytes ", %esi\n"                    \
      "  jmp simt_defer_write@PLT\n"                  \
      "1: cmpq simt_trial_stack(%rip), %rdi\n"        \
      "  jb simt_effect@PLT\n"                        \
      "  cmpq 8+simt_trial_stack(%rip), %rdi\n"       \
      "  jb 2b\n"                                     \
      "  jmp simt_effect@PLT\n"                       \
      ".size __wrap___tsan_write" #bytes ", .-__wrap___tsan_write" #bytes "\n");

SIMT_DEFERRED(1)
SIMT_DEFERRED(2)
SIMT_DEFERRED(4)
SIMT_DEFERRED(8)
SIMT_DEFERRED(16)

#define SIMT_VOLATILE(bytes, bits)                              \
  asm(".text\n"                                                 \
      ".globl __tsan_volatile_read" #bytes "\n"                 \
      ".type __tsan_volatile_read" #bytes ", @function\n"       \
      "__tsan_volatile_read" #bytes ":\n"                       \
      "  cmpb $0, simt_on_trial(%rip)\n"                        \
      "  jne 1f\n"                                              \
      "  pushq %rdi\n"                                          \
      "  call simt_volatile_read@PLT\n"                         \
      "  popq %rdi\n"                                           \
      "  movl $2, %esi\n" /* acquire */                         \
      "  jmp __tsan_atomic" #bits "_load@PLT\n"                 \
      "1: ret\n"                                                \
      ".globl __tsan_volatile_write" #bytes "\n"                \
      ".type __tsan_volatile_write" #bytes ", @function\n"      \
      "__tsan_volatile_write" #bytes ":\n"                      \
      "  cmpb $0, simt_on_trial(%rip)\n"                        \
      "  jne __wrap___tsan_write" #bytes "\n"                   \
      "  pushq %rdi\n"                                          \
      "  call simt_volatile_write@PLT\n"                        \
      "  popq %rdi\n"                                           \
      "  testl %eax, %eax\n"                                    \
      "  js __wrap___tsan_write" #bytes "\n"                    \
      "  movl %eax, %edx\n"                                     \
      "  xorl %esi, %esi\n" /* adds 0: an atomic write that changes nothing */ \
      "  jmp __tsan_atomic" #bits "_fetch_add@PLT\n");

SIMT_VOLATILE(1, 8)
SIMT_VOLATILE(2, 16)
SIMT_VOLATILE(4, 32)
SIMT_VOLATILE(8, 64)
asm(".text\n.globl __tsan_volatile_read16\n__tsan_volatile_read16: jmp __wrap___tsan_read16\n"
    ".globl __tsan_volatile_write16\n__tsan_volatile_write16: jmp __wrap___tsan_write16\n");

#define SIMT_AFTER_PENDING(name)                  \
  asm(".text\n"                                   \
      ".globl __wrap_" #name "\n"                 \
      ".type __wrap_" #name ", @function\n"       \
      "__wrap_" #name ":\n"                       \
      "  cmpb $0, simt_pending(%rip)\n"           \
      "  jne 1f\n"                                \
      "2: jmp __real_" #name "@PLT\n"             \
      "1: pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  subq $8, %rsp\n" \
      "  call simt_flush@PLT\n"                   \
      "  addq $8, %rsp\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"          \
      "  jmp 2b\n"                                \
      ".size __wrap_" #name ", .-__wrap_" #name "\n");

SIMT_AFTER_PENDING(__tsan_read1)
SIMT_AFTER_PENDING(__tsan_read2)
SIMT_AFTER_PENDING(__tsan_read4)
SIMT_AFTER_PENDING(__tsan_read8)
SIMT_AFTER_PENDING(__tsan_read16)
SIMT_AFTER_PENDING(__tsan_unaligned_read2)
SIMT_AFTER_PENDING(__tsan_unaligned_read4)
SIMT_AFTER_PENDING(__tsan_unaligned_read8)
SIMT_AFTER_PENDING(__tsan_unaligned_read16)
SIMT_AFTER_PENDING(__tsan_read_range)
SIMT_AFTER_PENDING(__tsan_func_entry)
SIMT_AFTER_PENDING(__tsan_func_exit)
SIMT_AFTER_PENDING(__tsan_atomic_thread_fence)

#define SIMT_ATOMICS_AFTER_PENDING(bits)                          \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_load)                  \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_store)                 \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_exchange)              \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_fetch_add)             \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_fetch_sub)             \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_fetch_and)             \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_fetch_or)              \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_fetch_xor)             \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_compare_exchange_strong) \
  SIMT_AFTER_PENDING(__tsan_atomic##bits##_compare_exchange_weak)

SIMT_ATOMICS_AFTER_PENDING(8)
SIMT_ATOMICS_AFTER_PENDING(16)
SIMT_ATOMICS_AFTER_PENDING(32)
SIMT_ATOMICS_AFTER_PENDING(64)

#endif

#endif
