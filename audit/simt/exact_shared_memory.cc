// Shared memory under a sanitizer: every object is a heap allocation, so that the sanitizer's own red zones surround it
// and its bytes count as never written.
#include "sanitizers.h"

#ifdef SIMT_SANITIZED

#include <cstdlib>
#include <cstring>

#include "block.h"
#include "failure.h"
#include "shared_memory.h"

#ifdef SIMT_SANITIZER_ADDRESS
#include <sanitizer/asan_interface.h>
#endif

namespace simt {
namespace {

constexpr unsigned kDynamicAlignment = 1024;
constexpr std::size_t kPage = 4096, kRest = 256;

// Pages of their own for one object, with an inaccessible rest: translated PTX keeps shared addresses in 32 bits.
std::size_t mapped(std::size_t bytes) { return (bytes + kRest + kPage - 1) / kPage * kPage; }

void* map_below_4GiB(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kBelow4GiB, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
#ifdef SIMT_SANITIZER_ADDRESS
  __asan_poison_memory_region(static_cast<char*>(memory) + bytes, mapped(bytes) - bytes);
#endif
#ifdef SIMT_SANITIZER_VALGRIND
  (void)VALGRIND_MAKE_MEM_NOACCESS(static_cast<char*>(memory) + bytes, mapped(bytes) - bytes);
#endif
  return memory;
}

void release(char* memory, std::size_t bytes) {
  if (!target.has_short_addresses) {
    std::free(memory);
    return;
  }
#ifdef SIMT_SANITIZER_ADDRESS
  __asan_unpoison_memory_region(memory, mapped(bytes));
#endif
  munmap(memory, mapped(bytes));
}

// `lead` inaccessible bytes before the object give it exactly the requested alignment, and no more.
char* allocate(std::size_t bytes, std::size_t alignment, std::size_t lead, std::uint32_t poison) {
  void* memory = nullptr;
  if (target.has_short_addresses) {
    memory = map_below_4GiB(lead + bytes);
  } else if (posix_memalign(&memory, alignment, lead + bytes == 0 ? 1 : lead + bytes) != 0) {
    memory = nullptr;
  }
  if (memory == nullptr) fail(Failure::room, "no memory for %zu bytes of shared memory", bytes);
  char* at = static_cast<char*>(memory) + lead;
  for (std::size_t i = 0; i < bytes; ++i) at[i] = reinterpret_cast<const char*>(&poison)[i % 4];
#ifdef SIMT_SANITIZER_ADDRESS
  __asan_poison_memory_region(memory, lead + bytes == 0 ? 1 : lead);
#endif
#ifdef SIMT_SANITIZER_VALGRIND
  (void)VALGRIND_MAKE_MEM_UNDEFINED(at, bytes);
  if (lead > 0) (void)VALGRIND_MAKE_MEM_NOACCESS(memory, lead);
#endif
  return at;
}

// AddressSanitizer cannot start a red zone inside eight bytes, so eight is the least alignment.
std::size_t lead_of(const SharedObject& object) { return object.alignment < 8 ? 8 : object.alignment; }

}  // namespace

SharedMemory::SharedMemory() = default;

void SharedMemory::begin_block(unsigned dynamic_bytes, unsigned limit, unsigned poison) {
  const Unseen unseen;
  static_bytes_ = 0;
  limit_ = limit;
  poison_ = kSharedPoison[poison];
  dynamic_bytes_ = dynamic_bytes;
  dynamic_ = allocate(dynamic_bytes, kDynamicAlignment, 0, poison_);
}

char* SharedMemory::allocate_object(const SharedObject& object) {
  const std::size_t lead = lead_of(object);
  return allocate(object.bytes, 2 * lead, lead, poison_);
}

void* SharedMemory::dynamic(unsigned alignment) const {
  if (alignment > kDynamicAlignment)
    fail_in_block(Failure::launch, "extern __shared__ memory aligned to %u bytes is not supported", alignment);
  return dynamic_;
}

void SharedMemory::end_block() {
  const Unseen unseen;
  for (const Placed& placed : placed_) 
    release(placed.address - lead_of(*placed.object), lead_of(*placed.object) + placed.object->bytes);
  placed_.clear();
  release(dynamic_, dynamic_bytes_);
}

}  // namespace simt

#endif
