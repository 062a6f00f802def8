// cooperative_groups::inclusive_scan and exclusive_scan, over the ranks of a tile or of coalesced threads.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Op>
inline T inclusive_scan(const Group& group, T value, Op op, SIMT_HERE) {
  return details::scanned(group, value, op, simt_file, simt_line);
}
template <typename Group, typename T>
inline T inclusive_scan(const Group& group, T value, SIMT_HERE) {
  return inclusive_scan(group, value, plus<T>(), simt_file, simt_line);
}

// The lowest rank receives T{}, as in CUDA.
template <typename Group, typename T, typename Op>
inline T exclusive_scan(const Group& group, T value, Op op, SIMT_HERE) {
  const T own = details::scanned(group, value, op, simt_file, simt_line);
  const T below = group.shfl_up(own, 1, simt_file, simt_line);
  return group.thread_rank() == 0 ? T{} : below;
}
template <typename Group, typename T>
inline T exclusive_scan(const Group& group, T value, SIMT_HERE) {
  return exclusive_scan(group, value, plus<T>(), simt_file, simt_line);
}

template <typename... T>
SIMT_UNSUPPORTED("inclusive_scan_update()") void inclusive_scan_update(T&&...);
template <typename... T>
SIMT_UNSUPPORTED("exclusive_scan_update()") void exclusive_scan_update(T&&...);

}  // namespace cooperative_groups
