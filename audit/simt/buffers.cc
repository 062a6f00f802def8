#include "buffers.h"

#include "sanitizers.h"

#ifndef SIMT_SANITIZED  // otherwise exact_buffers.cc

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace simt {
namespace {

constexpr std::uint64_t kPage = 4096;
// No access is allowed to so many bytes on either side of a buffer's file: address space, no memory. The second is for a
// process that may have little of it.
constexpr std::uint64_t kMargins[] = {1ULL << 30, 1ULL << 20};

// For describe_address, which asks for the data, and mapped_file, which asks for the whole mapping.
struct Mapped {
  char path[256];
  const char* data;
  std::uint64_t bytes;
  const char* base;
  std::uint64_t file_bytes;
};
constexpr std::size_t kMaxMapped = 256;
Mapped mapped[kMaxMapped];
std::size_t mapped_count = 0;

[[noreturn]] void refuse(const char* doing, const std::string& path) { fail_over(doing, path.c_str()); }

int open_file(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0) refuse("cannot open", path);
  return file;
}

std::uint64_t size_of(int file, const std::string& path) {
  struct stat status {};
  if (fstat(file, &status) != 0) refuse("cannot stat", path);
  if (!S_ISREG(status.st_mode)) fail(Failure::script, "%s is not a regular file", path.c_str());
  return static_cast<std::uint64_t>(status.st_size);
}

// Calls `each(start, end)` for every part of the file that is not a hole. A file system without holes has one part.
template <typename Each>
void for_extents(int file, std::uint64_t bytes, Each each) {
  std::uint64_t at = 0;
  while (at < bytes) {
    const off_t start = lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (start < 0 && errno == ENXIO) return;
    if (start < 0) return each(at, bytes);
    const off_t end = lseek(file, start, SEEK_HOLE);
    const std::uint64_t stop = end < 0 ? bytes : std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(end));
    each(static_cast<std::uint64_t>(start), stop);
    at = stop;
  }
}

// An address for `bytes` bytes, in whole pages, between two margins; nullptr where the system has no room.
char* reserve(std::uint64_t bytes) {
  const std::uint64_t pages = (bytes + kPage - 1) / kPage * kPage;
  for (const std::uint64_t margin : kMargins) {
    void* const whole =
        mmap(nullptr, margin + pages + margin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole != MAP_FAILED) return static_cast<char*>(whole) + margin;
  }
  return nullptr;
}

// Zeroes a part of the data region without committing pages that were holes.
void clear(const Buffer& buffer, std::uint64_t start, std::uint64_t end) {
  if (start >= end) return;
  const std::uint64_t first = buffer.offset + start, last = buffer.offset + end;
  const std::uint64_t hole = std::min((first + kPage - 1) / kPage * kPage, last);
  const std::uint64_t hole_end = std::max(last / kPage * kPage, hole);
  std::memset(buffer.base + first, 0, hole - first);
  if (hole_end > hole && fallocate(buffer.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(hole),
                                   static_cast<off_t>(hole_end - hole)) != 0)
    std::memset(buffer.base + hole, 0, hole_end - hole);
  std::memset(buffer.base + hole_end, 0, last - hole_end);
}

}  // namespace

Buffer map_buffer(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  Buffer buffer{open_file(path, O_RDWR), nullptr, 0, offset, bytes};
  buffer.file_bytes = size_of(buffer.file, path);
  if (offset > buffer.file_bytes || bytes > buffer.file_bytes - offset)
    fail(Failure::script, "%s has %llu bytes; a buffer of %llu bytes at offset %llu does not fit in it", path.c_str(),
         static_cast<unsigned long long>(buffer.file_bytes), static_cast<unsigned long long>(bytes),
         static_cast<unsigned long long>(offset));
  buffer.base = reserve(buffer.file_bytes);
  if (buffer.base == nullptr) refuse("no address space for", path);
  // An empty file cannot be mapped; its buffer is an address that nothing may touch.
  if (buffer.file_bytes > 0 && mmap(buffer.base, buffer.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                    buffer.file, 0) == MAP_FAILED)
    refuse("cannot map", path);
  if (mapped_count < kMaxMapped) {
    Mapped& entry = mapped[mapped_count++];
    std::snprintf(entry.path, sizeof(entry.path), "%s", path.c_str());
    entry.data = buffer.data();
    entry.bytes = bytes;
    entry.base = buffer.base;
    entry.file_bytes = buffer.file_bytes;
  }
  return buffer;
}

void describe_address(const void* address, char* text, std::size_t bytes) {
  text[0] = '\0';
  const auto at = reinterpret_cast<std::uint64_t>(address);
  std::uint64_t nearest = ~0ULL;
  for (std::size_t i = 0; i < mapped_count; ++i) {
    const auto data = reinterpret_cast<std::uint64_t>(mapped[i].data), end = data + mapped[i].bytes;
    const bool before = at < data;
    const std::uint64_t distance = before ? data - at : at - end;
    if ((!before && at < end) || distance >= nearest) continue;
    nearest = distance;
    std::snprintf(text, bytes, "%llu bytes %s %s", static_cast<unsigned long long>(distance),
                  before ? "before the start of" : "past the end of", mapped[i].path);
  }
}

void for_mapped_buffers(void (*each)(char* base, std::uint64_t bytes)) {
  for (std::size_t i = 0; i < mapped_count; ++i) each(const_cast<char*>(mapped[i].base), mapped[i].file_bytes);
}

bool mapped_file(const void* address, char (&path)[256]) {
  for (std::size_t i = 0; i < mapped_count; ++i)
    if (address >= mapped[i].base && address < mapped[i].base + mapped[i].file_bytes) {
      std::snprintf(path, sizeof(path), "%s", mapped[i].path);
      return true;
    }
  return false;
}

void fill_buffer(const Buffer& buffer, std::uint64_t word) {
  if (word == 0) return clear(buffer, 0, buffer.bytes);
  const std::uint64_t whole = buffer.bytes / sizeof(word) * sizeof(word);
  for (std::uint64_t at = 0; at < whole; at += sizeof(word)) std::memcpy(buffer.data() + at, &word, sizeof(word));
  std::memcpy(buffer.data() + whole, &word, buffer.bytes - whole);
}

void write_buffer(const Buffer& buffer, std::uint64_t at, const void* bytes, std::size_t size) {
  std::memcpy(buffer.data() + at, bytes, size);
}

void load_buffer(const Buffer& buffer, const std::string& path) {
  const int file = open_file(path, O_RDONLY);
  const std::uint64_t bytes = size_of(file, path);
  if (bytes != buffer.bytes)
    fail(Failure::script, "%s has %llu bytes, but its buffer has %llu", path.c_str(),
         static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(buffer.bytes));
  std::uint64_t done = 0;
  for_extents(file, bytes, [&](std::uint64_t start, std::uint64_t end) {
    clear(buffer, done, start);
    for (std::uint64_t at = start; at < end;) {
      const ssize_t got = pread(file, buffer.data() + at, end - at, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) refuse("cannot read", path);
      at += static_cast<std::uint64_t>(got);
    }
    done = end;
  });
  clear(buffer, done, bytes);
  close(file);
}

void save_buffer(const Buffer& buffer, const std::string& path) {
  const int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (ftruncate(file, static_cast<off_t>(buffer.file_bytes)) != 0) refuse("cannot size", path);
  for_extents(buffer.file, buffer.file_bytes, [&](std::uint64_t start, std::uint64_t end) {
    for (std::uint64_t at = start; at < end;) {
      const ssize_t put = pwrite(file, buffer.base + at, end - at, static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) refuse("cannot write", path);
      at += static_cast<std::uint64_t>(put);
    }
  });
  if (close(file) != 0) refuse("cannot write", path);
}

}  // namespace simt

#endif
