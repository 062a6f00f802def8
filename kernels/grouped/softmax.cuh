// The online softmax of one tile.
#pragma once
#include "panels.cuh"

namespace grouped {

// One warp, one slot; lane = column. score[slot] -> p[slot], r[slot], rescale[slot], the slot's (max, sum).
// visible: how many columns of this tile the row sees; for 0 or less its state stays as it is.
template <class Memory>
__device__ __forceinline__ void online_softmax(Memory& m, int slot, int visible, float score_scale) {
  const int lane = threadIdx.x % 32;
  float p = 0.0f;
  float rescale = 1.0f;
  if (visible > 0) {
    const bool seen = lane < visible;
    const float score = seen ? m.score[slot][lane] * score_scale : paged::kNothing;
    const float row_max = m.row_max[slot];
    const float row_sum = m.row_sum[slot];
    const float new_max = paged::max_of(row_max, paged::max_tree(score));
    p = seen ? paged::weight_of(score, new_max) : 0.0f;
    const float tile_sum = paged::sum_tree(p);
    if (row_sum > 0.0f) rescale = paged::weight_of(row_max, new_max);
    __syncwarp();  // every lane has read the state
    if (lane == 0) {
      m.row_max[slot] = new_max;
      m.row_sum[slot] = __fmaf_rn(row_sum, rescale, tile_sum);
    }
  }
  const __half rounded = __float2half_rn(p);
  m.p[slot][lane] = rounded;
  m.r[slot][lane] = __float2half_rn((p - __half2float(rounded)) * 2048.0f);
  if (lane < 16) m.rescale[slot][lane] = rescale;
}

}  // namespace grouped
