// Detects blocks that only read, before their threads get fibers of ThreadSanitizer. A grid with a fixed size may have
// hundreds of blocks that only read a length and exit, and creating a fiber takes a millisecond.
//
// A hidden trial runs every thread of a block up to its first effect that others could notice: a write outside its
// own stack, a barrier, an atomic. If all threads reach their end, the block runs again, visibly, on one fiber that all
// such blocks of the launch share. They cannot race among themselves, and no other thread is ordered with them.
// Otherwise the trial had no effect, and the block runs normally.
#include "block.h"

#ifdef SIMT_SANITIZER_THREAD

extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

extern "C" {
unsigned char simt_on_trial = 0;
const char* simt_trial_stack[2] = {nullptr, nullptr};
[[noreturn]] void simt_effect() {
  simt::current_block()->before_effect();
  __builtin_unreachable();
}
}

// The linker redirects calls of these functions here (audit/compile/instrumentation.py). The caller's return address,
// which a report shows, stays on top of the stack.
#if defined(__x86_64__)
#define SIMT_WRITER(name)                        \
  asm(".text\n"                                  \
      ".globl __wrap_" #name "\n"                \
      ".type __wrap_" #name ", @function\n"      \
      "__wrap_" #name ":\n"                      \
      "  cmpb $0, simt_on_trial(%rip)\n"         \
      "  jne 1f\n"                               \
      "2: cmpb $0, simt_pending(%rip)\n"          \
      "  jne 3f\n"                                \
      "4: jmp __real_" #name "@PLT\n"             \
      "3: pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  pushq %rax\n" \
      "  call simt_flush@PLT\n"                   \
      "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"         \
      "  jmp 4b\n"                                \
      "1: cmpq simt_trial_stack(%rip), %rdi\n"   \
      "  jb simt_effect@PLT\n"                   \
      "  cmpq 8+simt_trial_stack(%rip), %rdi\n"  \
      "  jb 2b\n"                                \
      "  jmp simt_effect@PLT\n"                  \
      ".size __wrap_" #name ", .-__wrap_" #name "\n");

// races.cc has __tsan_write1 to 16.
SIMT_WRITER(__tsan_unaligned_write2)
SIMT_WRITER(__tsan_unaligned_write4)
SIMT_WRITER(__tsan_unaligned_write8)
SIMT_WRITER(__tsan_unaligned_write16)
SIMT_WRITER(__tsan_write_range)
SIMT_WRITER(memset)
SIMT_WRITER(memcpy)
SIMT_WRITER(memmove)
// The first argument of these is never an address on the stack, so they always count as an effect.
SIMT_WRITER(printf)
SIMT_WRITER(puts)
SIMT_WRITER(putchar)
#endif

namespace simt {

bool Block::only_reads() {
#if !defined(__x86_64__)
  return false;
#endif
  running_block = this;
  running_ = true;
  blockIdx = index_;
  blockDim = dim3(grid_->threads);
  gridDim = dim3(grid_->blocks);
  simt_trial_stack[0] = stacks_.stack(0);
  simt_trial_stack[1] = stacks_.stack(0) + kStackBytes;

  begin_trial();
  on_trial_ = true;
  simt_on_trial = 1;
  const bool all_ended = run_in_turn();
  simt_on_trial = 0;
  on_trial_ = false;
  end_trial(all_ended);
  if (all_ended) {
    begin_reading(stacks_.stack(0));
    run_in_turn();
    end_reading();
    shared_.end_block();
  }
  running_ = false;
  running_block = nullptr;
  return all_ended;
}

// Runs threads to their end in turn, on one stack. Returns false as soon as one has an effect.
bool Block::run_in_turn() {
  for (unsigned thread = 0; thread < threads_; ++thread) {
    thread_indices_[thread] = thread_index(thread);
    start_context(contexts_[0], stacks_.stack(0), StackPool::usable(0), turn_main);
    current_ = thread;
    threadIdx = thread_indices_[thread];
    turn_ended_ = false;
    switch_context(scheduler_, contexts_[0]);
    if (!turn_ended_) return false;
  }
  return true;
}

void Block::turn_main() {
  Block& block = *running_block;
  block.grid_->kernel->call(block.grid_->arguments);
  block.turn_ended_ = true;
  switch_context(block.contexts_[0], block.scheduler_);
  __builtin_unreachable();
}

void Block::end_trial_here() {
  simt_on_trial = 0;
  switch_context(contexts_[0], scheduler_);
  __builtin_unreachable();
}

}  // namespace simt

#endif
