// What translated PTX (audit/simt/ptx) needs of the runtime beyond device.h.
#pragma once

#include <cstdint>

#include "device.h"

namespace simt {

// Whether an address is in the block's shared memory, or on the running thread's stack.
bool is_shared(const void* address);
bool is_local(const void* address);
unsigned dynamic_shared_bytes();

// A pointer that belongs to the running thread.
void set_thread_data(void* data);
void* thread_data();

[[noreturn]] void misaligned(std::uint64_t address, unsigned bytes, Site site);
// End the run as unsupported: a GPU has a result where C++ leaves it undefined.
[[noreturn]] void undefined_division(Site site);
[[noreturn]] void missing_return(Site site);
[[noreturn]] void assertion_failed(const char* assertion, Site site);

}  // namespace simt
