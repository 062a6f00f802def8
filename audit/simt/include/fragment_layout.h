// The matrix element of each lane's fragment element: the PTX ISA's layout of mma.m16n8k16 (f16 in, f32 accumulators),
// tiled to the wmma shapes. sm_80 and later lay out wmma fragments in the same way, although CUDA does not specify it.
//
// Every coordinate is a sum of a lane's part and an element's part: at(lane, i) = at(lane, 0) + at(0, i). Loops rely on
// that, because the compiler knows at(0, i).
#pragma once

namespace simt {

struct Coordinate {
  int row, column;
};

// A[m,16]: lanes hold m/2 elements; m is 8, 16 or 32.
constexpr Coordinate a_coordinate(int m, int lane, int i) {
  const int group = lane >> 2, pair = 2 * (lane & 3) + (i & 1);
  if (m == 8) return {group, pair + 8 * (i >> 1)};
  return {group + 8 * (i >> 1 & 1) + 16 * (i >> 3), pair + 8 * (i >> 2 & 1)};
}

// B[16,n]: lanes hold n/2 elements; n is 8, 16 or 32.
constexpr Coordinate b_coordinate(int lane, int i) {
  return {2 * (lane & 3) + (i & 1) + 8 * (i >> 1 & 1), (lane >> 2) + 8 * (i >> 2)};
}

// C[m,n] and D[m,n]: lanes hold m*n/32 elements.
constexpr Coordinate c_coordinate(int m, int lane, int i) {
  const int group = lane >> 2, pair = 2 * (lane & 3) + (i & 1);
  if (m == 8) return {group, pair + 8 * (i >> 1)};
  if (m == 32) return {group + 8 * (i >> 1 & 1) + 16 * (i >> 2), pair};
  return {group + 8 * (i >> 1 & 1), pair + 8 * (i >> 2)};
}

}  // namespace simt
