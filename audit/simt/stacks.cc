#include "stacks.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "failure.h"
#include "sanitizers.h"

namespace simt {
namespace {

constexpr std::size_t kGuardBytes = 64 * 1024;
constexpr std::size_t kStride = kGuardBytes + kStackBytes;

// The regions of stacks, for the signal handler, which must not lock.
struct Region {
  const char* base;
  std::size_t bytes;
};
constexpr int kMaxRegions = 4096;
Region regions[kMaxRegions];
std::atomic<int> region_count{0};

const Region* find_region(const void* address) {
  const char* at = static_cast<const char*>(address);
  const int count = region_count.load();
  for (int i = 0; i < count && i < kMaxRegions; ++i)
    if (at >= regions[i].base && at < regions[i].base + regions[i].bytes) return &regions[i];
  return nullptr;
}

}  // namespace

std::size_t StackPool::usable(std::size_t index) {
  // Stack tops at equal page offsets would all map to the same few cache sets.
  return kStackBytes - (index * 7 % 61) * 64;
}

void StackPool::reserve(std::size_t count) {
  if (count <= stacks_.size()) return;
  const std::size_t missing = count - stacks_.size();
  void* memory = mmap(nullptr, missing * kStride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(Failure::room, "no address space for %zu stacks: %s", count, std::strerror(errno));
  char* base = static_cast<char*>(memory);
  const int region = region_count.fetch_add(1);
  if (region < kMaxRegions) regions[region] = {base, missing * kStride};
  for (std::size_t i = 0; i < missing; ++i) {
    char* stack = base + i * kStride + kGuardBytes;
    if (mprotect(stack, kStackBytes, PROT_READ | PROT_WRITE) != 0)
      fail(Failure::room,
           "cannot make stack %zu of %zu: %s; ask for fewer OS threads or raise /proc/sys/vm/max_map_count",
           stacks_.size(), count, std::strerror(errno));
#ifdef SIMT_SANITIZER_VALGRIND
    (void)VALGRIND_STACK_REGISTER(stack, stack + kStackBytes);
#endif
    stacks_.push_back(stack);
  }
}

bool is_stack(const void* address) { return find_region(address) != nullptr; }

bool is_stack_guard(const void* address) {
  const Region* region = find_region(address);
  if (region == nullptr) return false;
  return static_cast<std::size_t>(static_cast<const char*>(address) - region->base) % kStride < kGuardBytes;
}

}  // namespace simt
