"""Where results differ, small enough to keep: a count for each cell of a buffer's leading dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul

import msgspec
import numpy as np

from audit.errors import EvidenceError
from audit.spec import Array

MOST_CELLS = 4096
_WIDTHS = (1, 2, 4, 8)
_LONG = 16


class Tally(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many elements differ in each cell of a buffer's leading dimensions.

    `counts` are unsigned integers, little-endian and of one width, one a cell in C order; `each` is how many elements
    a cell holds.
    """

    buffer: str
    dims: tuple[str, ...]
    extents: tuple[int, ...]
    each: int
    counts: bytes

    def values(self) -> tuple[int, ...]:
        """The counts, one a cell. EvidenceError where there are not as many as the extents say."""
        cells = prod(self.extents)
        width, rest = divmod(len(self.counts), max(1, cells))
        known = len(self.dims) == len(self.extents) and 0 < cells <= MOST_CELLS
        if rest or width not in _WIDTHS or not known:
            raise EvidenceError(
                f"differences of {self.buffer}: expected 1 to {MOST_CELLS} counts, one for each cell of "
                f"{list(self.extents)}, but got {len(self.counts)} bytes"
            )
        return tuple(np.frombuffer(self.counts, f"<u{width}").tolist())


def tally(buffer: str, extents: Sequence[tuple[str, int]], differ: Array) -> Tally | None:
    """The tally of a mask over a buffer's dimensions, (name, size) each: over as many of the first ones as have at most
    MOST_CELLS cells together, none long but the first: along a row of elements they are counted, not kept.
    None where nothing differs, or where the first dimension alone has more cells."""
    sizes = [size for _, size in extents]
    kept = sum(cells <= MOST_CELLS for cells in accumulate(sizes, mul))
    while kept > 1 and sizes[kept - 1] > _LONG:
        kept -= 1
    if not kept or not differ.any():
        return None
    cells = prod(sizes[:kept])
    counts = differ.reshape(cells, -1).sum(axis=1, dtype=np.uint64)
    width = next(width for width in _WIDTHS if int(counts.max()) < 2 ** (8 * width))
    return Tally(
        buffer,
        tuple(name for name, _ in extents[:kept]),
        tuple(sizes[:kept]),
        differ.size // cells,
        counts.astype(f"<u{width}").tobytes(),
    )
