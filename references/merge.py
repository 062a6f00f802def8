"""The grouped operator's merge of split partials, also of a workspace that a kernel wrote (bound 2)."""

import numpy as np
from numpy.typing import NDArray

from audit.formats import fma32

from .binary32 import Array32, exp32_floored, max32
from .splits import splits

NOTHING_SEEN = np.float32(-1e30)
"""The maximum of a row that has seen no token yet."""
_SKIPPED = np.float32(-1e20)


def merge(partial: Array32, lse: Array32, lengths: NDArray[np.int32], total: int) -> Array32:
    """The pre-cast output f32[rows, G, D] from partial f32[80, 8, G, D] and lse f32[80, 8, G, 2].

    Reads the active splits of total = max(0, lengths) and the first len(lengths) row slots; a row of length
    <= 0 is zeros whatever the workspace holds. `out` must be its rounding to f16.
    """
    rows = len(lengths)
    active = len(splits(total))
    maximum, sums = lse[:active, :rows, :, 0], lse[:active, :rows, :, 1]
    top = np.full(maximum.shape[1:], NOTHING_SEEN)
    with np.errstate(all="ignore"):  # an audited workspace may hold anything
        used = ~(maximum <= _SKIPPED)
        for s in range(active):
            top = np.where(used[s], max32(top, maximum[s]), top)
        weights = exp32_floored(maximum - top)
        total_sum = np.zeros_like(top)
        for s in range(active):
            total_sum = np.where(used[s], fma32(weights[s], sums[s], total_sum), total_sum)
        inverse = np.float32(1) / total_sum
        merged = np.zeros((rows, *partial.shape[2:]), np.float32)
        for s in range(active):
            scaled = (weights[s] * inverse)[..., None]
            merged = np.where(used[s][..., None], fma32(scaled, partial[s, :rows], merged), merged)
    merged[lengths <= 0] = 0
    return merged
