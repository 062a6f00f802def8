"""Which tokens each split of the grouped operator, and each partition of the scalar one, serves."""

import itertools

import numpy as np
from numpy.typing import NDArray

TILE = 32
CAPACITY_SPLITS = 80
CAPACITY_ROWS = 8
PARTITION = 1024
CAPACITY_PARTITIONS = 256


def total_of(lengths: NDArray[np.int32]) -> int:
    """max(0, lengths): how many tokens at least one row sees."""
    return max(0, int(lengths.max(initial=0)))


def splits(total: int) -> list[range]:
    """The tokens of each active split, ascending: together 0..total-1, none at total 0, at most 80.

    Each starts at a multiple of 32 tokens, so only the last can end inside a tile.
    """
    if total <= 0:
        return []
    active = 1 if total <= 128 else min(CAPACITY_SPLITS, -(-total // 64))
    base, extra = divmod(-(-total // TILE), active)
    starts = [TILE * (s * base + min(s, extra)) for s in range(active + 1)]
    return [range(start, min(end, total)) for start, end in itertools.pairwise(starts)]


def partitions(total: int) -> list[range]:
    """The tokens of each partition of the scalar operator: 1,024 each, the last one ending at the total."""
    return [range(start, min(start + PARTITION, total)) for start in range(0, total, PARTITION)]
