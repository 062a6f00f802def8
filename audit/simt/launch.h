// One kernel launch: checks it as CUDA does, and spreads its blocks over OS threads.
#pragma once

#include <cstdint>

#include "block.h"

namespace simt {

// Fails with `launch` unless CUDA would accept this grid on the program's target.
void check_grid(const Grid& grid);

class Launcher {
 public:
  explicit Launcher(unsigned threads) : threads_(threads) {}
  // Returns when every block has ended. An idle OS thread takes the next block.
  void run(const Grid& grid);

 private:
  unsigned threads_;
  std::vector<std::unique_ptr<Block>> workers_;  // one for each OS thread, kept for its stacks
};

}  // namespace simt
