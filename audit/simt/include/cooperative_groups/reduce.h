// cooperative_groups::reduce: every thread of a group receives the same value.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

namespace details {

// Each thread combines values from 1, 2, 4 ... ranks below, so that it covers its own and all lower ranks. The order of
// operations does not depend on the schedule; it is CUDA's order, so that sums of floats agree.
template <typename Group, typename T, typename Op>
inline T scanned(const Group& group, T value, Op& op, const char* file, int line) {
  for (unsigned distance = 1; distance < group.size(); distance *= 2) {
    const T below = group.shfl_up(value, distance, file, line);
    if (distance <= group.thread_rank()) value = op(value, below);
  }
  return value;
}

template <unsigned Size, typename Parent, typename T, typename Op>
inline T reduced(const thread_block_tile<Size, Parent>& tile, T value, Op& op, const char* file, int line) {
  for (unsigned distance = Size / 2; distance > 0; distance /= 2)
    value = op(value, tile.shfl_xor(value, distance, file, line));
  return value;
}

template <typename T, typename Op>
inline T reduced(const coalesced_group& group, T value, Op& op, const char* file, int line) {
  if (group.size() == 32) {  // CUDA treats it as a tile
    for (unsigned distance = 16; distance > 0; distance /= 2)
      value = op(value,
                 details::shuffled(simt::Shuffle::exchange, simt::kFullMask, value, distance, 32, {file, line}));
    return value;
  }
  const T sum = scanned(group, value, op, file, line);
  return group.shfl(sum, static_cast<int>(group.size()) - 1, file, line);
}

}  // namespace details

template <typename Group, typename T, typename Op>
inline T reduce(const Group& group, T value, Op op, SIMT_HERE) {
  static_assert(std::is_same_v<std::decay_t<decltype(op(value, value))>, T>,
                "reduce: the operator must return the type of the value");
  return details::reduced(group, value, op, simt_file, simt_line);
}

template <typename T, typename Op>
SIMT_UNSUPPORTED("reduce() over a whole thread_block") T reduce(const thread_block&, T, Op);
template <typename... T>
SIMT_UNSUPPORTED("reduce_update_async()") void reduce_update_async(T&&...);
template <typename... T>
SIMT_UNSUPPORTED("reduce_store_async()") void reduce_store_async(T&&...);

}  // namespace cooperative_groups
