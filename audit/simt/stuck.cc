// The failures of a block in which no thread can continue, or a thread exits while others wait for it.
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "block.h"

namespace simt {
namespace {

struct Waiting {
  std::string where;
  std::vector<unsigned> threads;
};

std::string ranges(const std::vector<unsigned>& threads) {
  std::string text;
  for (std::size_t i = 0; i < threads.size();) {
    std::size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(threads[i]);
    if (last > i) text += "-" + std::to_string(threads[last]);
    i = last + 1;
  }
  return (threads.size() == 1 ? "thread " : "threads ") + text;
}

std::string at(const char* what, const Site& site) {
  return std::string(what) + " (" + site.file + ":" + std::to_string(site.line) + ")";
}

std::string at_site(const LaneSlot& slot) { return at(slot.collective->name, slot.site); }

void add(std::vector<Waiting>& groups, const std::string& where, unsigned thread) {
  for (Waiting& group : groups)
    if (group.where == where) {
      group.threads.push_back(thread);
      return;
    }
  groups.push_back({where, {thread}});
}

std::string mask_text(std::uint32_t mask) {
  char text[32];
  std::snprintf(text, sizeof(text), " with mask 0x%08x", mask);
  return text;
}

}  // namespace

void Block::fail_stuck() const {
  std::vector<Waiting> groups;
  bool in_barrier = false;
  for (unsigned thread = 0; thread < threads_; ++thread) {
    const Warp& warp = warps_[thread / kLanes];
    const unsigned lane = thread % kLanes;
    const LaneSlot& slot = warp.slots[lane];
    if (warp.at_barrier >> lane & 1) {
      in_barrier = true;
      add(groups, at(slot.collective->name, slot.site), thread);
    } else if (warp.in_named >> lane & 1) {
      in_barrier = true;
      add(groups, at((warp.named.name() + (" " + std::to_string(warp.named.id))).c_str(), warp.named.site), thread);
    } else if (warp.in_collective >> lane & 1) {
      add(groups, at(slot.collective->name, slot.site) + mask_text(slot.mask), thread);
    }
  }
  for (unsigned thread = 0; thread < threads_; ++thread)
    if (warps_[thread / kLanes].exited >> thread % kLanes & 1) add(groups, "exited", thread);

  std::string text;
  for (const Waiting& group : groups) {
    if (!text.empty()) text += "; ";
    const bool one = group.threads.size() == 1;
    text += ranges(group.threads);
    if (group.where == "exited")
      text += one ? " has exited" : " have exited";
    else
      text += (one ? " waits at " : " wait at ") + group.where;
  }
  for (unsigned id = 1; id < kNamedBarriers; ++id)
    if (named_[id].arrived != 0)
      text += "; barrier " + std::to_string(id) + " has arrivals of " + std::to_string(named_[id].arrived) + " of " +
              std::to_string(named_[id].threads) + " threads";
  fail_in_block(in_barrier ? Failure::barrier : Failure::collective,
                "threads wait for one another at different places: %s", text.c_str());
}

// Called by a signal handler, but while the program's own code ran: no lock of the C library is held.
void Block::fail_over_time(std::uint64_t at) const {
  if (at == 0 || !running_) fail_in_block(Failure::wait, "a thread is in a function of the C library");
  std::vector<Waiting> groups;
  for (unsigned thread = 0; thread < threads_; ++thread) {
    const Warp& warp = warps_[thread / kLanes];
    const unsigned lane = thread % kLanes;
    const LaneSlot& slot = warp.slots[lane];
    if ((warp.exited >> lane & 1) != 0) {
      add(groups, "exited", thread);
    } else if ((warp.at_barrier >> lane & 1) != 0 || (warp.in_collective >> lane & 1) != 0) {
      add(groups, at_site(slot), thread);
    } else if ((warp.in_named >> lane & 1) != 0) {
      add(groups, warp.named.name() + (" (" + std::string(warp.named.site.file)) + ":" +
                      std::to_string(warp.named.site.line) + ")", thread);
    } else {
      const std::uint64_t address = thread == current_ && !inside_ ? at : addresses_[thread];
      char text[32] = "no turn yet";
      if (address != 0)
        std::snprintf(text, sizeof(text), "@%llx", static_cast<unsigned long long>(offset_in_program(address)));
      add(groups, text, thread);
    }
  }
  std::string text;
  for (const Waiting& group : groups) {
    if (!text.empty()) text += "; ";
    text += ranges(group.threads);
    if (group.where == "exited")
      text += " exited";
    else
      text += (group.where == "no turn yet" ? " had " : " at ") + group.where;
  }
  fail_in_block(Failure::wait, "%s", text.c_str());
}

void Block::fail_in_named(const NamedCall& call, const char* format, ...) const {
  char what[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(what, sizeof(what), format, arguments);
  va_end(arguments);
  fail_in_block(Failure::barrier, "thread %u (lane %u) called %s %u at %s:%d%s", current_, lane(), call.name(), call.id,
                call.site.file, call.site.line, what);
}

void Block::fail_on_exit_from_collective(const Warp& warp, unsigned lane) const {
  for (unsigned other = 0; other < kLanes; ++other) {
    const LaneSlot& slot = warp.slots[other];
    if ((warp.in_collective >> other & 1) == 0 || (slot.mask >> lane & 1) == 0) continue;
    fail_in_block(Failure::collective, "thread %u (lane %u) has exited, but lane %u waits for it at %s%s", current_,
                  lane, other, at(slot.collective->name, slot.site).c_str(), mask_text(slot.mask).c_str());
  }
}

void Block::describe(char* text, std::size_t bytes, bool with_thread) const {
  // The kernel's name is truncated, so that all parts fit in 512 bytes.
  int length = std::snprintf(text, bytes, "kernel %.300s, block (%u, %u, %u)", grid_->kernel->name, index_.x, index_.y,
                             index_.z);
  if (with_thread && running_) {
    const uint3 thread = thread_indices_[current_];
    length += std::snprintf(text + length, bytes - static_cast<std::size_t>(length), ", thread (%u, %u, %u)", thread.x,
                            thread.y, thread.z);
  }
  std::snprintf(text + length, bytes - static_cast<std::size_t>(length), ": ");
}

void describe_current_thread(char* text, std::size_t bytes) {
  text[0] = '\0';
  if (current_block() != nullptr) current_block()->describe(text, bytes, true);
}

void fail_in_block(Failure kind, const char* format, ...) {
  char message[6144];
  char where[512] = "";
  if (current_block() != nullptr) current_block()->describe(where, sizeof(where), false);
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  fail(kind, "%s%s", where, message);
}

}  // namespace simt
