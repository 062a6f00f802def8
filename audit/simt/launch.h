// One kernel launch: checked as CUDA checks it, its blocks spread over OS threads.
#pragma once

#include <cstdint>

#include "block.h"

namespace simt {

// Fails (launch) unless CUDA would accept this grid on the program's target.
void check_grid(const Grid& grid);

class Launcher {
 public:
  explicit Launcher(unsigned threads) : threads_(threads) {}
  // Returns when every block has ended. Each OS thread takes the next block as it gets free.
  void run(const Grid& grid);

 private:
  unsigned threads_;
  std::vector<std::unique_ptr<Block>> workers_;  // one an OS thread, kept for its stacks
};

}  // namespace simt
