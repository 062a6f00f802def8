"""Bounds 3 and 4 of the scalar operator's workspace. Its other bounds are in `bounds`."""

import numpy as np
from numpy.typing import NDArray

from .bounds import ErrorAndBound, log_sum_error, norm, partial_bound
from .scalar_fp64 import ScalarFP64


def partial_error(partial: NDArray[np.float32], reference: ScalarFP64, active: int) -> ErrorAndBound:
    """Bound 3 for the partials of the active partitions, f32[1, G, 256, D]: L2 over D, [active, 1, G]."""
    with np.errstate(all="ignore"):
        measured = norm(_by_partition(partial, active) - reference.partial[:active])
    return measured, partial_bound(reference, active)


def lse_error(
    maximum: NDArray[np.float32], sums: NDArray[np.float32], reference: ScalarFP64, active: int
) -> ErrorAndBound:
    """Bound 4 for the active partitions, maximum and sums f32[1, G, 256]: [active, 1, G]."""
    return log_sum_error(_by_partition(maximum, active), _by_partition(sums, active), reference, active)


def _by_partition(stored: NDArray[np.float32], active: int) -> NDArray[np.float32]:
    return np.moveaxis(stored, 2, 0)[:active]
