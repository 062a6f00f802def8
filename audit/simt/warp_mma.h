// D = A B + C of a warp: each lane passes its fragments, and the last lane to arrive multiplies for all.
#pragma once

#include <cstdint>

#include "device.h"
#include "tensor_core.h"

namespace simt {

// The shapes of f16 products with k = 16 and f32 accumulators: wmma's three and mma.sync's one.
enum class MmaShape : unsigned char { m16n16, m32n8, m8n32, m16n8 };

// One lane's fragments, in the layout of fragment_layout.h. d may be c.
struct MmaOperands {
  const std::uint16_t* a;
  const std::uint16_t* b;
  const float* c;
  float* d;
  Arch arch;
};

void warp_mma(MmaShape shape, const MmaOperands& operands, Site site);

}  // namespace simt
