// The shared memory of the block that an OS thread is running: a heap, emptied between blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device.h"
#include "sanitizers.h"

namespace simt {

// A signalling NaN as one float, a NaN as either of two halves, a NaN or a tiny number as e4m3 bytes.
constexpr std::uint32_t kSharedPoison = 0x7FA07FA0;

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Forgets the last block's objects and provides `dynamic_bytes` of poisoned dynamic shared memory. `limit`
  // bounds static and dynamic memory together.
  void begin_block(unsigned dynamic_bytes, unsigned limit);
  // Fails if a guard beside an object was written.
  void end_block();

  void* find_or_create(const SharedObject& object);
  void* dynamic(unsigned alignment) const;

 private:
  struct Placed {
    const SharedObject* object;
    char* address;
  };

  char* place(const SharedObject& object);

#ifndef SIMT_SANITIZED  // else every object has an allocation of its own
  char* base_;          // static objects grow from here
  char* end_;           // an inaccessible page starts here, right behind dynamic memory of whole 16 bytes
  char* free_ = nullptr;
#endif
  char* dynamic_ = nullptr;
  unsigned dynamic_bytes_ = 0;
  unsigned limit_ = 0;
  std::size_t static_bytes_ = 0;
  std::vector<Placed> placed_;
};

}  // namespace simt
