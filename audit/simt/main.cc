// The program that runs a bundle's launches on the CPU. Usage: program SCRIPT.
#include <cstdio>

#include "failure.h"
#include "sanitizers.h"
#include "script.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s SCRIPT\n", arguments[0]);
    return 3;
  }
  simt::catch_signals();
  simt::run_script(arguments[1]);
  return simt::sanitizer_status();
}
