#include "ptx_support.h"

#include "block.h"
#include "failure.h"

namespace simt {
namespace {
__thread void* data_of_thread[kMaxThreads];
}

bool is_shared(const void* address) {
  Block& block = *current_block();
  const Block::Inside inside(block);
  return block.shared().holds(address);
}

bool is_local(const void* address) { return is_stack(address); }

unsigned dynamic_shared_bytes() { return current_block()->grid().shared_bytes; }

void set_thread_data(void* data) { data_of_thread[current_block()->thread()] = data; }
void* thread_data() { return data_of_thread[current_block()->thread()]; }

void misaligned(std::uint64_t address, unsigned bytes, Site site) {
  fail_in_block(Failure::memory, "%s:%d: expected an address aligned to %u bytes, but got 0x%llx", site.file, site.line,
                bytes, static_cast<unsigned long long>(address));
}

void undefined_division(Site site) {
  fail_in_block(Failure::unsupported,
                "%s:%d: an integer division by zero, or of the smallest number by -1, which C++ leaves undefined; test "
                "the divisor first",
                site.file, site.line);
}

void missing_return(Site site) {
  fail_in_block(Failure::unsupported, "%s:%d: a function with a result ends without returning one", site.file, site.line);
}

void assertion_failed(const char* assertion, Site site) {
  if (Block* block = current_block()) block->before_effect();
  char where[512];
  describe_current_thread(where, sizeof(where));
  fail(Failure::assertion, "%s%s:%d: assertion `%s` failed", where, site.file, site.line, assertion);
}

}  // namespace simt
