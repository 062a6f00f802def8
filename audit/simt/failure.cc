#include "failure.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"
#include "buffers.h"
#include "read_only.h"

namespace simt {
namespace {

constexpr int kExitStatus = 3;
constexpr int kNoRoom = 74;  // where not even the report can be written
constexpr std::size_t kSignalStack = 64 * 1024;

int report_file = -1;
std::atomic<bool> failing{false};

const char* kind_name(Failure kind) {
  switch (kind) {
    case Failure::script: return "script";
    case Failure::launch: return "launch";
    case Failure::barrier: return "barrier";
    case Failure::collective: return "collective";
    case Failure::assertion: return "assert";
    case Failure::memory: return "memory";
    case Failure::room: return "room";
    case Failure::wait: return "wait";
    case Failure::unsupported: return "unsupported";
    case Failure::arguments: return "arguments";
  }
  return "script";
}

bool write_all(int file, const char* text, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(file, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

void write_report(const char* text, std::size_t bytes) {
  if (report_file >= 0 && !write_all(report_file, text, bytes)) _exit(kNoRoom);
}

// `line` has no newline yet, but room for one.
[[noreturn]] void finish(char* line) {
  std::size_t length = std::strlen(line);
  for (std::size_t i = 0; i < length; ++i)
    if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
  line[length++] = '\n';
  write_report(line, length);
  (void)write_all(STDERR_FILENO, line, length);
  _exit(kExitStatus);
}

#ifdef SIMT_SANITIZED
long behind_shared_memory(const void*) { return -1; }
unsigned dynamic_bytes() { return 0; }
#else
long behind_shared_memory(const void* address) {
  return current_block() != nullptr ? current_block()->shared().behind(address) : -1;
}
unsigned dynamic_bytes() { return current_block()->shared().dynamic_bytes(); }
#endif

void claim_failure() {
  if (failing.exchange(true))
    for (;;) pause();
}

void on_signal(int number, siginfo_t* info, void*) {
  if (number == SIGSEGV && info->si_code == SEGV_ACCERR && admits_write(info->si_addr)) return;
  claim_failure();
  static char line[2048];
  char where[512];
  describe_current_thread(where, sizeof(where));
  const void* address = info->si_addr;
  if (number == SIGFPE) {
    std::snprintf(line, sizeof(line) - 1, "error memory %sinteger division by zero or overflow", where);
  } else if (number == SIGILL) {
    std::snprintf(line, sizeof(line) - 1, "error memory %sthis CPU lacks an instruction of the program", where);
  } else if (char mapped[256]; number == SIGBUS && info->si_code == BUS_ADRERR && mapped_file(address, mapped)) {
    std::snprintf(line, sizeof(line) - 1, "error room %s: the file system has no page left for it", mapped);
  } else if (is_stack_guard(address)) {
    std::snprintf(line, sizeof(line) - 1,
                  "error memory %sthe thread's stack of %zu KiB overflowed; reduce local arrays or recursion", where,
                  kStackBytes / 1024);
  } else if (const long behind = behind_shared_memory(address); behind >= 0) {
    std::snprintf(line, sizeof(line) - 1,
                  "error memory %saccess to dynamic shared memory %ld bytes past the end of its %u bytes", where, behind,
                  dynamic_bytes());
  } else if (info->si_code == SI_KERNEL) {
    std::snprintf(line, sizeof(line) - 1,
                  "error memory %saccess to a misaligned vector or to an address outside the address space", where);
  } else {
    char nearest[256];
    describe_address(address, nearest, sizeof(nearest));
    std::snprintf(line, sizeof(line) - 1, "error memory %saccess to address %p, which no buffer covers%s%s", where,
                  address, nearest[0] != '\0' ? "; it is " : "", nearest);
  }
  finish(line);
}

}  // namespace

void open_report(const char* path) {
  if (report_file >= 0) close(report_file);
  report_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (report_file < 0) fail_over("cannot write the report", path);
}

void fail_over(const char* doing, const char* path) {
  const int error = errno;
  const bool shortage = error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM || error == EMFILE ||
                        error == ENFILE || error == EIO || error == EROFS;
  fail(shortage ? Failure::room : Failure::script, "%s %s: %s", doing, path, std::strerror(error));
}

void report_line(const char* format, ...) {
  char line[2048];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  write_report(line, length + 1);
}

void fail(Failure kind, const char* format, ...) {
  claim_failure();
  std::fflush(stdout);
  static char line[8192];
  const int prefix = std::snprintf(line, sizeof(line), "error %s ", kind_name(kind));
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line + prefix, sizeof(line) - 1 - static_cast<std::size_t>(prefix), format, arguments);
  va_end(arguments);
  finish(line);
}

void install_signal_stack() {
#ifdef SIMT_SANITIZER_ADDRESS
  return;
#endif
  static thread_local char* stack = nullptr;
  if (stack != nullptr) return;
  stack = static_cast<char*>(std::malloc(kSignalStack));
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = kSignalStack;
  sigaltstack(&alternate, nullptr);
}

void catch_signals() {
#ifdef SIMT_SANITIZER_ADDRESS
  return;  // AddressSanitizer's own handler reports the line
#endif
  install_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);  // an interruption here would run other fibers, whose faults nobody could handle
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

}  // namespace simt

// The handler of <assert.h>. The C library's own would abort without the block and thread.
extern "C" [[noreturn]] void __assert_fail(const char* expression, const char* file, unsigned int line,
                                           const char*) noexcept {
  if (simt::Block* block = simt::current_block()) block->before_effect();
  char where[512];
  simt::describe_current_thread(where, sizeof(where));
  simt::fail(simt::Failure::assertion, "%s%s:%u: assertion `%s` failed", where, file, line, expression);
}
