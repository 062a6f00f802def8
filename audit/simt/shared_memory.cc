#include "shared_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "block.h"
#include "failure.h"

namespace simt {

namespace {
constexpr unsigned kStaticLimit = 48 * 1024;  // ptxas refuses more
}

void* SharedMemory::find_or_create(const SharedObject& object) {
  for (const Placed& placed : placed_)
    if (placed.object == &object) return placed.address;

  const Unseen unseen;
  static_bytes_ += object.bytes;
  if (static_bytes_ > kStaticLimit)
    fail_in_block(Failure::launch,
                  "%s:%d: `%s` raises static shared memory to %zu bytes; the limit is %u, use extern __shared__",
                  object.file, object.line, object.name, static_bytes_, kStaticLimit);
  if (static_bytes_ + dynamic_bytes_ > limit_)
    fail_in_block(Failure::launch,
                  "%s:%d: `%s` raises shared memory to %zu bytes (%zu static, %u dynamic); the limit of %s is %u",
                  object.file, object.line, object.name, static_bytes_ + dynamic_bytes_, static_bytes_,
                  dynamic_bytes_, target.arch, limit_);

  char* address = allocate_object(object);
  placed_.push_back({&object, address});
  return address;
}

bool SharedMemory::holds(const void* address) const {
  const auto within = [&](const char* start, std::size_t bytes) { return address >= start && address < start + bytes; };
  for (const Placed& placed : placed_)
    if (within(placed.address, placed.object->bytes)) return true;
  return within(dynamic_, dynamic_bytes_);
}

#ifndef SIMT_SANITIZED  // otherwise exact_shared_memory.cc

namespace {

constexpr std::size_t kHeapBytes = 1024 * 1024;  // far more than the limit, guards and alignment need
constexpr std::size_t kPage = 4096;
constexpr std::size_t kGuardBytes = 64;
constexpr unsigned kDynamicAlignment = 16;
constexpr unsigned char kGuard = 0xB5;

// Doubles the written part at each step, so that a large block costs no more than a copy.
void poison(char* at, std::size_t bytes, std::uint32_t word) {
  std::size_t done = bytes < sizeof(word) ? bytes : sizeof(word);
  std::memcpy(at, &word, done);
  for (std::size_t part; done < bytes; done += part) {
    part = done < bytes - done ? done : bytes - done;
    std::memcpy(at + done, at, part);
  }
}

bool is_intact(const char* guard, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (static_cast<unsigned char>(guard[i]) != kGuard) return false;
  return true;
}

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

SharedMemory::SharedMemory() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (target.has_short_addresses ? kBelow4GiB : 0);
  void* memory = mmap(nullptr, kHeapBytes + kInaccessible, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) fail(Failure::room, "no memory for a block's shared memory: %s", std::strerror(errno));
  base_ = static_cast<char*>(memory);
  end_ = base_ + kHeapBytes;
  mprotect(end_, kInaccessible, PROT_NONE);
}

void SharedMemory::begin_block(unsigned dynamic_bytes, unsigned limit, unsigned poison_kind) {
  placed_.clear();
  free_ = base_;
  static_bytes_ = 0;
  limit_ = limit;
  poison_ = kSharedPoison[poison_kind];
  dynamic_bytes_ = dynamic_bytes;
  dynamic_ = end_ - round_up(dynamic_bytes, kDynamicAlignment);
  std::memset(dynamic_ - kGuardBytes, kGuard, kGuardBytes);
  poison(dynamic_, dynamic_bytes, poison_);
  std::memset(dynamic_ + dynamic_bytes, kGuard, static_cast<std::size_t>(end_ - dynamic_) - dynamic_bytes);
}

char* SharedMemory::allocate_object(const SharedObject& object) {
  // Gives exactly the declared alignment, so that a vector access that needs more fails.
  const std::size_t period = 2 * object.alignment;
  const std::size_t first = reinterpret_cast<std::size_t>(free_) + kGuardBytes;
  char* address = free_ + kGuardBytes + (round_up(first + object.alignment, period) - object.alignment - first);
  std::memset(free_, kGuard, static_cast<std::size_t>(address - free_));
  poison(address, object.bytes, poison_);
  free_ = address + object.bytes;
  std::memset(free_, kGuard, kGuardBytes);
  return address;
}

void* SharedMemory::dynamic(unsigned alignment) const {
  if (reinterpret_cast<std::size_t>(dynamic_) % alignment != 0 || alignment > kPage)
    fail_in_block(Failure::launch,
                  "extern __shared__ memory aligned to %u bytes is not supported with %u bytes of it", alignment,
                  dynamic_bytes_);
  return dynamic_;
}

void SharedMemory::end_block() {
  for (const Placed& placed : placed_) {
    if (!is_intact(placed.address - kGuardBytes, kGuardBytes))
      fail_in_block(Failure::memory, "a write before the start of shared `%s` (%s:%d)", placed.object->name,
                    placed.object->file, placed.object->line);
    if (!is_intact(placed.address + placed.object->bytes, kGuardBytes))
      fail_in_block(Failure::memory, "a write past the end of shared `%s` (%s:%d), %u bytes", placed.object->name,
                    placed.object->file, placed.object->line, placed.object->bytes);
  }
  if (!is_intact(dynamic_ - kGuardBytes, kGuardBytes))
    fail_in_block(Failure::memory, "a write before the start of dynamic shared memory");
  const char* dynamic_end = dynamic_ + dynamic_bytes_;
  if (!is_intact(dynamic_end, static_cast<std::size_t>(end_ - dynamic_end)))
    fail_in_block(Failure::memory, "a write past the end of dynamic shared memory, %u bytes at launch", dynamic_bytes_);
}

#endif

}  // namespace simt
