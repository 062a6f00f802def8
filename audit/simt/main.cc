// The program that runs a bundle's launches on the CPU: program SCRIPT.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "failure.h"
#include "sanitizers.h"
#include "script.h"

namespace {

// The process that started this one may have ended before it could be followed.
void end_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* named = std::getenv("KERNEL_AUDIT_PARENT");
  const pid_t parent = named != nullptr ? static_cast<pid_t>(std::atol(named)) : 0;
  if (parent > 0 && parent != getppid() && kill(parent, 0) != 0 && errno == ESRCH) _exit(3);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s SCRIPT\n", arguments[0]);
    return 3;
  }
  end_with_parent();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // whole lines are out when a kernel crashes
  std::set_new_handler([] { simt::fail(simt::Failure::room, "the kernel's process has no more memory"); });
  simt::catch_signals();
  simt::run_script(arguments[1]);
  return simt::sanitizer_status();
}
