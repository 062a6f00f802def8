#include "warp_mma.h"

#include "include/fragment_layout.h"

namespace simt {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kDepth = 16;

template <int M, int N>
void complete_mma(LaneSlot* slots, std::uint32_t) {
  alignas(32) std::uint16_t a[M * kDepth], b[kDepth * N];
  alignas(32) float c[M * N];
  const auto operands = [&](int lane) { return static_cast<const MmaOperands*>(slots[lane].operands); };
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const MmaOperands& mine = *operands(lane);
    for (int i = 0; i < M / 2; ++i) {
      const Coordinate at = a_coordinate(M, lane, i);
      a[at.row * kDepth + at.column] = mine.a[i];
    }
    for (int i = 0; i < N / 2; ++i) {
      const Coordinate at = b_coordinate(lane, i);
      b[at.row * N + at.column] = mine.b[i];
    }
    for (int i = 0; i < M * N / kWarpLanes; ++i) {
      const Coordinate at = c_coordinate(M, lane, i);
      c[at.row * N + at.column] = mine.c[i];
    }
  }
  tensor_core_f16(operands(0)->arch, M, N, kDepth, a, b, c, c);
  for (int lane = 0; lane < kWarpLanes; ++lane)
    for (int i = 0; i < M * N / kWarpLanes; ++i) {
      const Coordinate at = c_coordinate(M, lane, i);
      operands(lane)->d[i] = c[at.row * N + at.column];
    }
}

constexpr Collective products[] = {{"wmma::mma_sync 16x16x16", true, complete_mma<16, 16>},
                                   {"wmma::mma_sync 32x8x16", true, complete_mma<32, 8>},
                                   {"wmma::mma_sync 8x32x16", true, complete_mma<8, 32>},
                                   {"mma_m16n8k16", true, complete_mma<16, 8>}};

}  // namespace

void warp_mma(MmaShape shape, const MmaOperands& operands, Site site) {
  MmaOperands mine = operands;  // on this lane's own stack, which stays as it is while the lane waits
  LaneSlot slot{};
  slot.operands = &mine;
  slot.site = site;
  join_collective(products[static_cast<unsigned>(shape)], kFullMask, slot);
}

}  // namespace simt
