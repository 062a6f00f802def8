// A flow of control that can be suspended and resumed on the same OS thread.
//
// x86-64 uses its own switch (tests/simt/switch_bench.cc: 14 ns); other machines, or SIMT_UCONTEXT, use ucontext. Both
// save the floating-point environment, so that a rounding mode set in one fiber does not leak into the next.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_HAND_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace simt {

#ifdef SIMT_HAND_SWITCH

struct Context {
  void* stack_pointer = nullptr;
};

extern "C" void simt_switch_stack(void** left, void* resumed);

inline void switch_context(Context& left, Context& resumed) {
  simt_switch_stack(&left.stack_pointer, resumed.stack_pointer);
}

#else

struct Context {
  ucontext_t state;
};

inline void switch_context(Context& left, Context& resumed) { swapcontext(&left.state, &resumed.state); }

#endif

// Makes `context` call `entry` on the given stack when first resumed; `entry` must never return.
// `stack` is the lowest address; `stack + bytes` must be a multiple of 16.
void start_context(Context& context, char* stack, std::size_t bytes, void (*entry)());

}  // namespace simt
