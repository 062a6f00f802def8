// Prints the nanoseconds of one switch between two fibers, the median of nine runs of four million.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "context.h"

namespace {

constexpr std::size_t kBytes = 64 * 1024;
constexpr int kTurns = 2'000'000;
simt::Context starter, first, second;

void run_first() {
  for (;;) {
    for (int turn = 0; turn < kTurns; ++turn) simt::switch_context(first, second);
    simt::switch_context(first, starter);
  }
}

void run_second() {
  for (;;) simt::switch_context(second, first);
}

}  // namespace

int main() {
  for (auto [context, entry] : {std::pair{&first, run_first}, std::pair{&second, run_second}})
    simt::start_context(*context, static_cast<char*>(std::aligned_alloc(4096, kBytes)), kBytes, entry);
  std::array<double, 9> nanoseconds;
  for (double& run : nanoseconds) {
    const auto began = std::chrono::steady_clock::now();
    simt::switch_context(starter, first);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    run = took.count() / (2.0 * kTurns);
  }
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("%.1f\n", nanoseconds[nanoseconds.size() / 2]);
}
