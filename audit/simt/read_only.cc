#include "read_only.h"

#ifdef SIMT_SANITIZED

#include "device.h"

namespace simt {

bool has_read_only_loads = false;
void read_only_load(const void*, std::size_t, Site) {}

}  // namespace simt

#else

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "block.h"
#include "buffers.h"

namespace simt {

bool has_read_only_loads = false;

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMaxTracked = 256;

struct Tracked {
  char* base = nullptr;
  std::uint64_t bytes = 0;
  char* before = nullptr;                                 // what a dirty page held when the launch began
  std::unique_ptr<std::atomic<unsigned char>[]> dirty;    // for each page
  std::atomic<bool> given_up{false};                      // the system refuses to split the mapping further
};

Tracked tracked[kMaxTracked];
std::size_t tracked_count = 0;
std::atomic<bool> active{false};
std::atomic_flag busy = ATOMIC_FLAG_INIT;

Tracked* tracked_at(const void* address) {
  const char* const at = static_cast<const char*>(address);
  for (std::size_t i = 0; i < tracked_count; ++i)
    if (at >= tracked[i].base && at < tracked[i].base + tracked[i].bytes) return &tracked[i];
  return nullptr;
}

std::uint64_t pages(const Tracked& buffer) { return (buffer.bytes + kPage - 1) / kPage; }

void protect(const Tracked& buffer, int protection) { mprotect(buffer.base, buffer.bytes, protection); }

}  // namespace

void begin_read_only_tracking() {
  if (!has_read_only_loads) return;
  for_mapped_buffers([](char* base, std::uint64_t bytes) {
    if (bytes == 0 || tracked_at(base) != nullptr || tracked_count == kMaxTracked) return;
    Tracked& buffer = tracked[tracked_count];
    void* const before = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (before == MAP_FAILED) return;
    buffer.base = base;
    buffer.bytes = bytes;
    buffer.before = static_cast<char*>(before);
    buffer.dirty.reset(new std::atomic<unsigned char>[pages(buffer)]);
    ++tracked_count;
  });
  for (std::size_t i = 0; i < tracked_count; ++i) {
    for (std::uint64_t page = 0; page < pages(tracked[i]); ++page) tracked[i].dirty[page] = 0;
    tracked[i].given_up = false;
    protect(tracked[i], PROT_READ);
  }
  active = true;
}

void end_read_only_tracking() {
  if (!active.exchange(false)) return;
  for (std::size_t i = 0; i < tracked_count; ++i) protect(tracked[i], PROT_READ | PROT_WRITE);
}

bool admits_write(const void* address) {
  if (!active) return false;
  Tracked* const buffer = tracked_at(address);
  if (buffer == nullptr) return false;
  const std::uint64_t page = static_cast<std::uint64_t>(static_cast<const char*>(address) - buffer->base) / kPage;
  while (busy.test_and_set(std::memory_order_acquire)) continue;
  if (buffer->dirty[page] == 0) {
    const std::uint64_t start = page * kPage;
    const std::uint64_t bytes = buffer->bytes - start < kPage ? buffer->bytes - start : kPage;
    std::memcpy(buffer->before + start, buffer->base + start, bytes);
    buffer->dirty[page] = 1;
    if (mprotect(buffer->base + start, kPage, PROT_READ | PROT_WRITE) != 0) {
      buffer->given_up = true;
      protect(*buffer, PROT_READ | PROT_WRITE);
    }
  }
  busy.clear(std::memory_order_release);
  return true;
}

void read_only_load(const void* address, std::size_t bytes, Site site) {
  const Tracked* const buffer = active ? tracked_at(address) : nullptr;
  if (buffer == nullptr || buffer->given_up) return;
  const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<const char*>(address) - buffer->base);
  if (buffer->dirty[offset / kPage] == 0 || offset + bytes > buffer->bytes ||
      std::memcmp(buffer->before + offset, address, bytes) == 0)
    return;
  char where[512], name[256];
  describe_current_thread(where, sizeof(where));
  if (!mapped_file(address, name)) name[0] = '\0';
  fail(Failure::memory,
       "%s%s:%d: __ldg reads %zu bytes of %s that this launch has written; it may only read what no thread writes "
       "during the launch, and a GPU may give the old value",
       where, site.file, site.line, bytes, name);
}

}  // namespace simt

#endif
