// Watches the OS threads that run blocks. A CUDA thread that spins without a call of the runtime would keep all others
// from running, which a GPU does not allow it: after a while it is interrupted, others take their turns, and where it
// waits for a block that has not begun, another OS thread begins more blocks. At the program's time limit it says where
// the threads are.
#pragma once

#include <functional>

#include "sanitizers.h"

namespace simt {

class Block;

#ifdef SIMT_SANITIZED  // sanitizers know nothing of such interruptions
inline void set_time_limit(unsigned) {}
class Watched {
 public:
  explicit Watched(Block&) {}
};
class MoreBlocks {
 public:
  explicit MoreBlocks(std::function<void()>) {}
};
#else

// After so much wall-clock time the program reports where its threads are, and ends.
void set_time_limit(unsigned milliseconds);

// During its lifetime, the calling OS thread runs blocks with `block`.
class Watched {
 public:
  explicit Watched(Block& block);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  unsigned slot_;
};

// During its lifetime, `begin` starts one more OS thread for blocks that have not begun, if there are any.
class MoreBlocks {
 public:
  explicit MoreBlocks(std::function<void()> begin);
  ~MoreBlocks();
  MoreBlocks(const MoreBlocks&) = delete;
  MoreBlocks& operator=(const MoreBlocks&) = delete;
};

#endif

}  // namespace simt
