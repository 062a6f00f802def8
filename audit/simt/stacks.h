// Stacks for the fibers of one OS thread, each above a guard page, reused from block to block.
#pragma once

#include <cstddef>
#include <vector>

namespace simt {

// CUDA allows 512 KiB of local memory a thread. Pages are committed only when touched.
constexpr std::size_t kStackBytes = 512 * 1024;

class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Makes at least `count` stacks available. Stacks live as long as the process.
  void reserve(std::size_t count);
  // The lowest address of stack `index`, and the bytes from there to its top (a multiple of 16).
  char* stack(std::size_t index) const { return stacks_[index]; }
  static std::size_t usable(std::size_t index);

 private:
  std::vector<char*> stacks_;
};

// Whether `address` is in any stack or guard page.
bool is_stack(const void* address);
// Whether `address` is in the guard page of any stack; async-signal-safe.
bool is_stack_guard(const void* address);

}  // namespace simt
