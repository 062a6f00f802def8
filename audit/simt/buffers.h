// A program's buffers: files of a bundle, mapped into memory. Kernels see a part of each file; the rest are guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace simt {

struct Buffer {
  int file;
  char* base;               // of the whole mapped file
  std::uint64_t file_bytes;
  std::uint64_t offset;     // where the data region starts
  std::uint64_t bytes;      // of the data region
  char* data() const { return base + offset; }
};

// Describes `address` relative to the nearest mapped buffer: "12 bytes past the end of k.bin", or nothing.
// For the signal handler: it neither locks nor allocates.
void describe_address(const void* address, char* text, std::size_t bytes);
// Whether a buffer's file is mapped at `address`, and its name.
bool mapped_file(const void* address, char (&path)[256]);

// Each function fails, naming the file, if the system refuses (`fail_over`).
Buffer map_buffer(const std::string& path, std::uint64_t offset, std::uint64_t bytes);
// Repeats the little-endian word over the data region; the last copy may be truncated.
void fill_buffer(const Buffer& buffer, std::uint64_t word);
// Writes bytes into the data region.
void write_buffer(const Buffer& buffer, std::uint64_t at, const void* bytes, std::size_t size);
// Replaces the data region by a file of exactly its size; holes stay holes.
void load_buffer(const Buffer& buffer, const std::string& path);
// Copies the whole mapped file, guards included; holes stay holes.
void save_buffer(const Buffer& buffer, const std::string& path);

// Calls `each` for the whole mapping of every buffer, guards included.
void for_mapped_buffers(void (*each)(char* base, std::uint64_t bytes));

}  // namespace simt
