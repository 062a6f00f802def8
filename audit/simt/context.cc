#include "context.h"

#include <cstdint>
#include <cstring>

namespace simt {

#ifdef SIMT_HAND_SWITCH

// A suspended stack holds, lowest address first: MXCSR and the x87 control word in eight bytes, r15, r14, r13, r12,
// rbx, rbp, and the address to resume at. The switch ends in `ret`: the fibers of a block mostly wait at one call, so
// the return predictor has the right addresses up to the kernel. (`pop; jmp` would leave one too many.)
asm(R"(
    .text
    .globl simt_switch_stack
    .type simt_switch_stack, @function
    .p2align 4
simt_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch_stack, .-simt_switch_stack
)");

void start_context(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  constexpr std::uint64_t default_environment = 0x037FULL << 32 | 0x1F80U;  // round to nearest, no flush to zero
  // A null return address above the saved words makes rsp 8 mod 16 on entry, as after a call.
  std::uint64_t frame[9] = {default_environment, 0, 0, 0, 0, 0, 0, reinterpret_cast<std::uint64_t>(entry), 0};
  char* bottom = stack + bytes - sizeof(frame);
  std::memcpy(bottom, frame, sizeof(frame));
  context.stack_pointer = bottom;
}

#else

void start_context(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = stack;
  context.state.uc_stack.ss_size = bytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

#endif

}  // namespace simt
