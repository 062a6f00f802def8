// The shared memory of an OS thread's running block: a heap, emptied between blocks.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device.h"
#include "sanitizers.h"

namespace simt {

// What a block finds in its shared memory; the kind changes from step to step and from arm to arm. The first reads as
// a signalling NaN in f32, as NaN in both halves in f16, and as NaN or a tiny number in e4m3. A maximum or a minimum
// swallows it, so the others are large in both, and finite: above and below what kernels compute.
constexpr std::uint32_t kSharedPoison[kPoisonKinds] = {0x7FA07FA0, 0x7BFF7BFF, 0xFBFFFBFF};

// Where mmap finds addresses of 32 bits, for translated PTX; a machine that cannot has no such programs.
#ifdef MAP_32BIT
constexpr int kBelow4GiB = MAP_32BIT;
#else
constexpr int kBelow4GiB = 0;
#endif

class SharedMemory {
 public:
  static constexpr std::size_t kInaccessible = 1024 * 1024;  // bytes behind dynamic memory

  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Drops the last block's objects and provides `dynamic_bytes` of poisoned dynamic shared memory. `limit` bounds
  // static and dynamic memory together; `poison` is a kind.
  void begin_block(unsigned dynamic_bytes, unsigned limit, unsigned poison);
  // Fails if a guard next to an object was overwritten.
  void end_block();

  void* find_or_create(const SharedObject& object);
  void* dynamic(unsigned alignment) const;
  // Whether the address is in an object of the block or in its dynamic memory.
  bool holds(const void* address) const;
#ifndef SIMT_SANITIZED
  // The bytes from the end of dynamic memory to an address behind it that faults, or -1 for any other address.
  long behind(const void* address) const {
    const char* const at = static_cast<const char*>(address);
    return at >= end_ && at < end_ + kInaccessible ? at - (dynamic_ + dynamic_bytes_) : -1;
  }
  unsigned dynamic_bytes() const { return dynamic_bytes_; }
#endif

 private:
  struct Placed {
    const SharedObject* object;
    char* address;
  };

  char* allocate_object(const SharedObject& object);

#ifndef SIMT_SANITIZED  // otherwise every object has its own allocation
  char* base_;          // static objects start here
  char* end_;           // an inaccessible page starts here, directly behind dynamic memory in units of 16 bytes
  char* free_ = nullptr;
#endif
  char* dynamic_ = nullptr;
  unsigned dynamic_bytes_ = 0;
  unsigned limit_ = 0;
  std::uint32_t poison_ = 0;
  std::size_t static_bytes_ = 0;
  std::vector<Placed> placed_;
};

}  // namespace simt
