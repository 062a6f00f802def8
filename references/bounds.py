"""The error against FP64 that the arithmetic of an operator permits (kernels/CONTRACT.md, section 7).

Every function returns two f64 arrays of the same shape, error and bound; a result passes where `error <= bound`. A
NaN, or a number where nothing is seen, has the error NaN or infinity, which fails. Bound 1 and bound 2 are equalities
of bytes and need no function: see `contract` and `merge`. `precast_error` and `final_error` serve both operators, the
others the grouped one; the scalar ones are in `scalar_bounds`.
"""

import numpy as np
from numpy.typing import NDArray

from .attention import AttentionFP64
from .fp64 import GroupedFP64
from .merge import NOTHING_SEEN

Array64 = NDArray[np.float64]
ErrorAndBound = tuple[Array64, Array64]


def precast_error(precast: NDArray[np.float32], reference: AttentionFP64) -> ErrorAndBound:
    """Bound 3 for the output before its rounding, f32[rows, G, D]: L2 over D, [rows, G]."""
    return norm(precast - reference.out), precast_bound(reference)


def precast_bound(reference: AttentionFP64) -> Array64:
    """Bound 3 for the output before its rounding, [rows, G]: 2^-22*(a*||A|| + (4+S)*||B||) + ||U||, L2 over D.

    a is 4 for grouped, 4 + sqrt(n) for scalar: see their `accumulation`.
    """
    a = reference.accumulation(reference.seen)
    rounding = a * norm(reference.mass) + (4 + reference.reach) * norm(reference.spread)
    return np.asarray(2.0**-22 * rounding + norm(reference.loss))


def partial_bound(reference: AttentionFP64, active: int) -> Array64:
    """Bound 3 for the normalised partials of the active parts, [active, rows, G], like `precast_bound`."""
    a = reference.accumulation(reference.partial_seen[:active])
    mass, spread = norm(reference.partial_mass[:active]), norm(reference.partial_spread[:active])
    rounding = a * mass + (4 + reference.partial_reach[:active]) * spread
    return np.asarray(2.0**-22 * rounding + norm(reference.partial_loss[:active]))


def partial_error(
    partial: NDArray[np.float32], lse: NDArray[np.float32], reference: GroupedFP64, active: int
) -> ErrorAndBound:
    """Bound 3 for the normalised partials of the active splits: L2 over D, [active, rows, G].

    partial f32[80, 8, G, D] is divided by the sums of lse f32[80, 8, G, 2] in f64. Where a row sees nothing of a
    split, the stored partial itself counts, and must be 0.
    """
    rows = len(reference.out)
    seen = np.isfinite(reference.partial_lse[:active])
    sums = lse[:active, :rows, :, 1].astype(np.float64)
    with np.errstate(all="ignore"):
        normalised = partial[:active, :rows] / np.where(seen, sums, 1)[..., None]
        measured = norm(normalised - reference.partial[:active])
    return measured, partial_bound(reference, active)


def lse_error(lse: NDArray[np.float32], reference: GroupedFP64, active: int) -> ErrorAndBound:
    """Bound 4: |max + ln(sum) - FP64| <= 2^-24*(8 + 3S) for the active splits, [active, rows, G].

    lse f32[80, 8, G, 2]. Where a row sees nothing, (-1e30, 0) has the error 0 and everything else infinity.
    """
    rows = len(reference.out)
    stored = lse[:active, :rows]
    measured, bound = log_sum_error(stored[..., 0], stored[..., 1], reference, active)
    seen = np.isfinite(reference.partial_lse[:active])
    empty = (stored[..., 0] == NOTHING_SEEN) & (stored[..., 1] == 0)
    return np.where(seen, measured, np.where(empty, 0, np.inf)), np.where(seen, bound, 0)


def log_sum_error(
    maximum: NDArray[np.float32], sums: NDArray[np.float32], reference: AttentionFP64, active: int
) -> ErrorAndBound:
    """Bound 4 of the active parts, where something is seen: maximum and sums f32[active, rows, G]."""
    with np.errstate(all="ignore"):
        value = maximum.astype(np.float64) + np.log(sums.astype(np.float64))
        measured = np.abs(value - reference.partial_lse[:active])
    return measured, 2.0**-24 * (8 + 3 * reference.partial_reach[:active])


def final_error(out: NDArray[np.float16], reference: AttentionFP64) -> ErrorAndBound:
    """Bound 5 for the output f16[rows, G, D]: relative L2 over D, [rows, G].

    At most 1.02 times that of FP64 rounded to f16, plus 2e-6 and ||U||. Where FP64 is exactly 0, both sides are
    absolute, and the bound is that of `precast_error`, rounded to f16.
    """
    size = norm(reference.out)
    zero = size == 0
    unit = np.where(zero, 1, size)
    with np.errstate(over="ignore", invalid="ignore"):
        measured = norm(out - reference.out) / unit
        rounded = norm(reference.out.astype(np.float16) - reference.out) / unit
    relative = 1.02 * rounded + 2e-6 + norm(reference.loss) / unit
    before = precast_bound(reference)
    # Rounding |x| <= before to f16 adds at most 2^-11 |x|, and half a subnormal step an element.
    half_step = np.where(before > 0, 2.0**-25 * np.sqrt(out.shape[-1]), 0)
    return measured, np.where(zero, before * (1 + 2.0**-11) + half_step, relative)


def norm(x: Array64) -> Array64:
    """L2 over the last axis."""
    return np.asarray(np.sqrt(np.square(x).sum(axis=-1)))
