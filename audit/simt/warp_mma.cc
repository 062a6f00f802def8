#include "warp_mma.h"

#include <cstring>

#include "include/fragment_layout.h"

namespace simt {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kDepth = 16;

constexpr int row_major(Coordinate at, int columns) { return at.row * columns + at.column; }

template <int M, int N>
void complete_mma(LaneSlot* slots, std::uint32_t) {
  alignas(32) std::uint16_t a[M * kDepth], b[kDepth * N];
  alignas(32) float c[M * N];
  const auto operands = [&](int lane) { return static_cast<const MmaOperands*>(slots[lane].operands); };
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const MmaOperands& mine = *operands(lane);
    std::uint16_t* a_lane = a + row_major(a_coordinate(M, lane, 0), kDepth);
    std::uint16_t* b_lane = b + row_major(b_coordinate(lane, 0), N);
    float* c_lane = c + row_major(c_coordinate(M, lane, 0), N);
    // Elements 2i and 2i+1 of A, C and D are adjacent in their row.
#pragma GCC unroll 16
    for (int i = 0; i < M / 2; i += 2) std::memcpy(a_lane + row_major(a_coordinate(M, 0, i), kDepth), mine.a + i, 4);
#pragma GCC unroll 16
    for (int i = 0; i < N / 2; ++i) b_lane[row_major(b_coordinate(0, i), N)] = mine.b[i];
#pragma GCC unroll 16
    for (int i = 0; i < M * N / kWarpLanes; i += 2)
      std::memcpy(c_lane + row_major(c_coordinate(M, 0, i), N), mine.c + i, 8);
  }
  tensor_core_f16(operands(0)->arch, M, N, kDepth, a, b, c, c);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    float* d = operands(lane)->d;
    const float* c_lane = c + row_major(c_coordinate(M, lane, 0), N);
#pragma GCC unroll 16
    for (int i = 0; i < M * N / kWarpLanes; i += 2)
      std::memcpy(d + i, c_lane + row_major(c_coordinate(M, 0, i), N), 8);
  }
}

constexpr Collective products[] = {{"wmma::mma_sync 16x16x16", true, complete_mma<16, 16>},
                                   {"wmma::mma_sync 32x8x16", true, complete_mma<32, 8>},
                                   {"wmma::mma_sync 8x32x16", true, complete_mma<8, 32>},
                                   {"mma_m16n8k16", true, complete_mma<16, 8>}};

}  // namespace

void warp_mma(MmaShape shape, const MmaOperands& operands, Site site) {
  MmaOperands mine = operands;  // on this lane's stack, which does not change while the lane waits
  LaneSlot slot{};
  slot.operands = &mine;
  slot.site = site;
  join_collective(products[static_cast<unsigned>(shape)], kFullMask, slot);
}

}  // namespace simt
