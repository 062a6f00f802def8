// Buffers under a sanitizer: each is a heap allocation of exactly its size, so that the sanitizer's own red zones
// surround it. Its file provides the initial contents and the guards of the copies, and is never written.
#include "sanitizers.h"

#ifdef SIMT_SANITIZED

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "buffers.h"
#include "failure.h"

#ifdef SIMT_SANITIZER_ADDRESS
#include <sanitizer/asan_interface.h>
#endif

namespace simt {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc aligns

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

void read_all(int file, char* to, std::uint64_t bytes, std::uint64_t from, const std::string& path) {
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t got = pread(file, to + done, bytes - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse("cannot read", path);
    done += static_cast<std::uint64_t>(got);
  }
}

#ifdef SIMT_SANITIZER_VALGRIND

std::map<const char*, std::uint64_t> poisons;  // the poison of each filled buffer

// Memcheck allows copies of undefined bytes. An undefined byte other than the poison was computed from unwritten data.
void check_defined(const Buffer& buffer) {
  const auto filled = poisons.find(buffer.data());
  if (filled == poisons.end()) return;
  std::vector<unsigned char> undefined(buffer.bytes);
  if (VALGRIND_GET_VBITS(buffer.data(), undefined.data(), buffer.bytes) != 1) return;
  std::vector<char> now(buffer.data(), buffer.data() + buffer.bytes);
  (void)VALGRIND_MAKE_MEM_DEFINED(now.data(), now.size());
  const char* poison = reinterpret_cast<const char*>(&filled->second);
  for (std::uint64_t at = 0; at < buffer.bytes; ++at)
    if (undefined[at] != 0 && now[at] != poison[at % sizeof(std::uint64_t)]) {
      std::uint64_t end = at;
      while (end < buffer.bytes && undefined[end] != 0) ++end;
      (void)VALGRIND_CHECK_MEM_IS_DEFINED(buffer.data() + at, end - at);
      at = end;
    }
}

#endif

}  // namespace

Buffer map_buffer(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  Buffer buffer{open_file(path, O_RDONLY), nullptr, 0, offset, bytes};
  buffer.file_bytes = size_of(buffer.file, path);
  if (offset > buffer.file_bytes || bytes > buffer.file_bytes - offset)
    fail(Failure::script, "%s has %llu bytes; a buffer of %llu bytes at offset %llu does not fit in it", path.c_str(),
         static_cast<unsigned long long>(buffer.file_bytes), static_cast<unsigned long long>(bytes),
         static_cast<unsigned long long>(offset));
  void* memory = nullptr;
  // The lead bytes, which give the data their offset from an aligned address, are out of bounds like those behind.
  const std::uint64_t lead = offset % kAlignment;
  if (posix_memalign(&memory, kAlignment, lead + bytes == 0 ? 1 : lead + bytes) != 0)
    fail(Failure::script, "no memory for the %llu bytes of %s", static_cast<unsigned long long>(bytes), path.c_str());
  char* data = static_cast<char*>(memory) + lead;
  buffer.base = data - offset;
  read_all(buffer.file, data, bytes, offset, path);
#ifdef SIMT_SANITIZER_ADDRESS
  if (lead + bytes == 0) __asan_poison_memory_region(memory, 1);
  if (lead > 0) __asan_poison_memory_region(memory, lead);
#endif
#ifdef SIMT_SANITIZER_VALGRIND
  if (lead + bytes == 0) (void)VALGRIND_MAKE_MEM_NOACCESS(memory, 1);
  if (lead > 0) (void)VALGRIND_MAKE_MEM_NOACCESS(memory, lead);
#endif
  return buffer;
}

void describe_address(const void*, char* text, std::size_t) { text[0] = '\0'; }
bool mapped_file(const void*, char (&)[256]) { return false; }

void fill_buffer(const Buffer& buffer, std::uint64_t word) {
  for (std::uint64_t at = 0; at < buffer.bytes; at += sizeof(word))
    std::memcpy(buffer.data() + at, &word, buffer.bytes - at < sizeof(word) ? buffer.bytes - at : sizeof(word));
#ifdef SIMT_SANITIZER_VALGRIND
  (void)VALGRIND_MAKE_MEM_UNDEFINED(buffer.data(), buffer.bytes);
  poisons[buffer.data()] = word;
#endif
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
  read_all(file, buffer.data(), bytes, 0, path);
  close(file);
}

void save_buffer(const Buffer& buffer, const std::string& path) {
#ifdef SIMT_SANITIZER_VALGRIND
  check_defined(buffer);
#endif
  std::vector<char> whole(buffer.file_bytes);
  read_all(buffer.file, whole.data(), buffer.file_bytes, 0, path);
  std::memcpy(whole.data() + buffer.offset, buffer.data(), buffer.bytes);
#ifdef SIMT_SANITIZER_VALGRIND
  (void)VALGRIND_MAKE_MEM_DEFINED(whole.data(), whole.size());
#endif
  const int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (std::uint64_t at = 0; at < whole.size();) {
    const ssize_t put = write(file, whole.data() + at, whole.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) refuse("cannot write", path);
    at += static_cast<std::uint64_t>(put);
  }
  if (close(file) != 0) refuse("cannot write", path);
}

}  // namespace simt

#endif
