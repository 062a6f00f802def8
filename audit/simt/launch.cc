#include "launch.h"

#include "read_only.h"
#include "watchdog.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <system_error>
#include <thread>

namespace simt {
namespace {

// Each stack takes two memory maps, of which Linux allows a process 65,530 by default.
constexpr unsigned kMaxStacks = 28'000;
constexpr std::size_t kMostOthers = 64;  // OS threads beside the first, where blocks wait for blocks
#ifdef SIMT_SANITIZER_THREAD
constexpr bool kOneAtATime = true;  // ThreadSanitizer's fibers share one pool and slow each other down
#else
constexpr bool kOneAtATime = false;
#endif

void require(bool holds, const Grid& grid, const char* what, std::uint64_t value, std::uint64_t limit) {
  if (!holds)
    fail(Failure::launch, "kernel %s: expected %s of 1 to %llu, but got %llu", grid.kernel->name, what,
         static_cast<unsigned long long>(limit), static_cast<unsigned long long>(value));
}

// The order of blocks: k * step + start, where step and count are coprime.
struct Order {
  std::uint64_t count, step, start;
  std::uint64_t operator()(std::uint64_t k) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(k) * step + start) % count);
  }
};

Order block_order(std::uint64_t count, std::uint64_t seed) {
  if (seed == 0 || count == 1) return {count, 1, 0};
  std::uint64_t step = (seed * 0x9E3779B97F4A7C15ULL >> 16) % count;
  while (std::gcd(step, count) != 1) ++step;
  return {count, step, seed % count};
}

}  // namespace

void check_grid(const Grid& grid) {
  const auto in = [](std::uint64_t value, std::uint64_t limit) { return value >= 1 && value <= limit; };
  const std::uint64_t block = static_cast<std::uint64_t>(grid.threads.x) * grid.threads.y * grid.threads.z;
  require(in(grid.blocks.x, 0x7FFFFFFF), grid, "grid x", grid.blocks.x, 0x7FFFFFFF);
  require(in(grid.blocks.y, 65'535), grid, "grid y", grid.blocks.y, 65'535);
  require(in(grid.blocks.z, 65'535), grid, "grid z", grid.blocks.z, 65'535);
  require(in(grid.threads.x, 1024), grid, "block x", grid.threads.x, 1024);
  require(in(grid.threads.y, 1024), grid, "block y", grid.threads.y, 1024);
  require(in(grid.threads.z, 64), grid, "block z", grid.threads.z, 64);
  require(in(block, kMaxThreads), grid, "threads a block", block, kMaxThreads);
  if (grid.shared_bytes > target.shared_limit)
    fail(Failure::launch, "kernel %s: %u bytes of dynamic shared memory; the limit of %s is %u", grid.kernel->name,
         grid.shared_bytes, target.arch, target.shared_limit);
}

void Launcher::run(const Grid& grid) {
  check_grid(grid);
  const std::uint64_t blocks = static_cast<std::uint64_t>(grid.blocks.x) * grid.blocks.y * grid.blocks.z;
  const unsigned block_threads = grid.threads.x * grid.threads.y * grid.threads.z;
  const unsigned allowed = kOneAtATime ? 1U : std::max(1U, std::min(threads_, kMaxStacks / block_threads));
  const unsigned count = static_cast<unsigned>(std::min<std::uint64_t>(allowed, blocks));
  while (workers_.size() < count) workers_.push_back(std::make_unique<Block>());

  const Order order = block_order(blocks, grid.seed);
  std::atomic<std::uint64_t> next{0};
  const auto work = [&](Block& block) {
    install_signal_stack();
    const Watched watched(block);
    for (std::uint64_t k = next++; k < blocks; k = next++) block.run(grid, order(k));
  };
  Watch::begin_launch();
  begin_read_only_tracking();
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < count; ++i) others.emplace_back(work, std::ref(*workers_[i]));
  } catch (const std::system_error&) {  // no more threads: those that there are do the work
  }
  {
    const MoreBlocks more([&] {
      if (kOneAtATime || next >= blocks || others.size() >= kMostOthers) return;
      workers_.push_back(std::make_unique<Block>());
      try {
        others.emplace_back(work, std::ref(*workers_.back()));
      } catch (const std::system_error&) {
      }
    });
    work(*workers_[0]);
  }
  for (std::thread& other : others) other.join();
  end_read_only_tracking();
  Watch::end_launch();
}

}  // namespace simt
