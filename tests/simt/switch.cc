// Two fibers and their starter take turns. Prints what each saw; compiled with and without SIMT_UCONTEXT.
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "context.h"

namespace {

constexpr std::size_t kBytes = 64 * 1024;
simt::Context starter, first, second;

void run_first() {
  double kept = 1.5;
  std::fesetround(FE_UPWARD);
  for (int turn = 0;; ++turn) {
    std::printf("first %d %.1f %s\n", turn, kept, std::fegetround() == FE_UPWARD ? "up" : "lost");
    kept += 1;
    simt::switch_context(first, second);
  }
}

void run_second() {
  alignas(16) char local;
  for (int turn = 0;; ++turn) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(&local) % 16 == 0;
    std::printf("second %d %s %s\n", turn, aligned ? "aligned" : "misaligned",
                std::fegetround() == FE_TONEAREST ? "nearest" : "leaked");
    simt::switch_context(second, turn == 0 ? first : starter);
  }
}

}  // namespace

int main() {
  for (auto [context, entry] : {std::pair{&first, run_first}, std::pair{&second, run_second}})
    simt::start_context(*context, static_cast<char*>(std::aligned_alloc(4096, kBytes)), kBytes, entry);
  simt::switch_context(starter, first);
  std::printf("starter %s\n", std::fegetround() == FE_TONEAREST ? "nearest" : "leaked");
}
