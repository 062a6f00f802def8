#include "watchdog.h"

#include "block.h"

#ifdef SIMT_SANITIZED

namespace simt {

void allow_interrupts() {}
std::uint64_t offset_in_program(std::uint64_t address) { return address; }

}  // namespace simt

#else

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "failure.h"

extern "C" char __executable_start, etext;

namespace simt {
namespace {

constexpr std::chrono::milliseconds kTick{10};
constexpr unsigned kSlots = 1024;
constexpr unsigned kPatience = 3;   // ticks that a thread spins in one block, after which one more block begins
constexpr unsigned kTries = 50;     // to find a thread in the program's own code when the time is over
const int kInterrupt = SIGRTMIN + 3;

struct Slot {
  pthread_t thread;
  Block* block;  // null: free
  std::uint64_t switches;  // of the block's threads, at the last tick
  std::uint64_t yields;    // of its threads that wait for others
  std::uint64_t number;    // of the block that ran then
  unsigned ticks;          // that it has been running
};

std::mutex mutex;  // guards the slots and `begin_more`
Slot slots[kSlots];
unsigned used = 0;
std::function<void()>* begin_more = nullptr;
std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
std::atomic<bool> is_over{false};  // the next interruption reports and ends the program

std::uint64_t program_counter(void* context) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<ucontext_t*>(context)->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

bool is_of_the_program(std::uint64_t at) {
  return at >= reinterpret_cast<std::uint64_t>(&__executable_start) && at < reinterpret_cast<std::uint64_t>(&etext);
}

// Runs on the interrupted thread's own stack, so that it can be left for another and returned to.
void on_interrupt(int, siginfo_t*, void* context) {
  Block* const block = current_block();
  if (block == nullptr) return;
  const std::uint64_t at = program_counter(context);
  static std::atomic<unsigned> tries{0};
  if (is_over && (is_of_the_program(at) || ++tries > kTries)) block->fail_over_time(is_of_the_program(at) ? at : 0);
  if (!is_over && is_of_the_program(at)) block->interrupt(at);
}

void watch() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    lock.unlock();
    std::this_thread::sleep_for(kTick);
    lock.lock();
    const bool late = std::chrono::steady_clock::now() >= deadline;
    const Slot* longest = nullptr;
    for (unsigned i = 0; i < used; ++i) {
      Slot& slot = slots[i];
      if (slot.block == nullptr) continue;
      const std::uint64_t switches = slot.block->switches(), number = slot.block->blocks_begun();
      slot.ticks = number == slot.number ? slot.ticks + 1 : 0;
      const std::uint64_t yields = slot.block->yields();
      const bool spins = switches == slot.switches || yields != slot.yields;
      if (switches == slot.switches && !late) pthread_kill(slot.thread, kInterrupt);
      if (spins && slot.ticks % kPatience == kPatience - 1 && begin_more != nullptr) (*begin_more)();
      slot.yields = yields;
      slot.switches = switches;
      slot.number = number;
      if (longest == nullptr || slot.ticks > longest->ticks) longest = &slot;
    }
    if (late && longest != nullptr) {
      is_over = true;
      pthread_kill(longest->thread, kInterrupt);
    }
  }
}

void start() {
  static const bool started = [] {
    struct sigaction action {};
    action.sa_sigaction = on_interrupt;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kInterrupt, &action, nullptr);
    std::thread(watch).detach();
    return true;
  }();
  (void)started;
}

int first_object(dl_phdr_info* info, std::size_t, void* bias) {
  *static_cast<std::uint64_t*>(bias) = info->dlpi_addr;
  return 1;
}

}  // namespace

void allow_interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kInterrupt);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::uint64_t offset_in_program(std::uint64_t address) {
  std::uint64_t bias = 0;
  dl_iterate_phdr(first_object, &bias);
  return address - bias;
}

void set_time_limit(unsigned milliseconds) {
  const std::lock_guard<std::mutex> lock(mutex);
  deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

Watched::Watched(Block& block) {
  start();
  const std::lock_guard<std::mutex> lock(mutex);
  slot_ = 0;
  while (slot_ < used && slots[slot_].block != nullptr) ++slot_;
  if (slot_ == kSlots) fail(Failure::script, "more than %u threads run blocks", kSlots);
  if (slot_ == used) ++used;
  slots[slot_] = {pthread_self(), &block, block.switches(), block.yields(), block.blocks_begun(), 0};
}

Watched::~Watched() {
  const std::lock_guard<std::mutex> lock(mutex);
  slots[slot_].block = nullptr;
}

MoreBlocks::MoreBlocks(std::function<void()> begin) {
  const std::lock_guard<std::mutex> lock(mutex);
  begin_more = new std::function<void()>(std::move(begin));
}

MoreBlocks::~MoreBlocks() {
  const std::lock_guard<std::mutex> lock(mutex);
  delete begin_more;
  begin_more = nullptr;
}

}  // namespace simt

#endif
