"""What error against FP64 the arithmetic of the grouped operator permits (kernels/CONTRACT.md, "Bounds").

Every function gives two f64 arrays of the same shape, measured and bound; a result passes where
`measured <= bound`. What cannot be measured (NaN, or numbers where nothing is seen) measures NaN or
infinity, which fails. Bound 1 and bound 2 are equalities of bytes and need no function: see `contract` and
`merge`.
"""

import numpy as np
from numpy.typing import NDArray

from .fp64 import GroupedFP64
from .merge import NOTHING_SEEN

Array64 = NDArray[np.float64]
Verdict = tuple[Array64, Array64]

FP64_ERROR = 1e-13
"""Relative L2 of `fp64` against `exact`, at most."""


def precast_error(precast: NDArray[np.float32], reference: GroupedFP64) -> Verdict:
    """Bound 3 for the output before its rounding, f32[rows, G, D]: L2 over D, [rows, G]."""
    bound = _certified(reference.mass, reference.spread, reference.reach)
    return _norm(precast - reference.out), bound


def partial_error(
    partial: NDArray[np.float32], lse: NDArray[np.float32], reference: GroupedFP64, active: int
) -> Verdict:
    """Bound 3 for the normalised partials of the active splits: L2 over D, [active, rows, G].

    partial f32[80, 8, G, D] is divided by the sums of lse f32[80, 8, G, 2] in f64. Where a row sees nothing
    in a split the stored partial itself is measured, and must be 0.
    """
    rows = len(reference.out)
    seen = np.isfinite(reference.partial_lse[:active])
    sums = lse[:active, :rows, :, 1].astype(np.float64)
    with np.errstate(all="ignore"):
        normalised = partial[:active, :rows] / np.where(seen, sums, 1)[..., None]
        measured = _norm(normalised - reference.partial[:active])
    bound = _certified(
        reference.partial_mass[:active], reference.partial_spread[:active], reference.partial_reach[:active]
    )
    return measured, bound


def lse_error(lse: NDArray[np.float32], reference: GroupedFP64, active: int) -> Verdict:
    """Bound 4: |max + ln(sum) - FP64| <= 2^-24*(8 + 3S) for the active splits, [active, rows, G].

    lse f32[80, 8, G, 2]. Where a row sees nothing only (-1e30, 0) will do: it measures 0, all else infinity.
    """
    rows = len(reference.out)
    stored = lse[:active, :rows]
    exact = reference.partial_lse[:active]
    seen = np.isfinite(exact)
    with np.errstate(all="ignore"):
        value = stored[..., 0].astype(np.float64) + np.log(stored[..., 1].astype(np.float64))
        measured = np.abs(value - exact)
    empty = (stored[..., 0] == NOTHING_SEEN) & (stored[..., 1] == 0)
    measured = np.where(seen, measured, np.where(empty, 0, np.inf))
    return measured, np.where(seen, 2.0**-24 * (8 + 3 * reference.partial_reach[:active]), 0)


def final_error(out: NDArray[np.float16], reference: GroupedFP64) -> Verdict:
    """Bound 5 for the output f16[rows, G, D]: relative L2 over D, [rows, G].

    At most 1.02 times that of FP64 rounded to f16, plus 2e-6. Where FP64 is exactly 0 there is no ratio:
    both sides are then absolute, and the bound is that of `precast_error`, rounded to f16.
    """
    size = _norm(reference.out)
    zero = size == 0
    unit = np.where(zero, 1, size)
    with np.errstate(over="ignore", invalid="ignore"):
        measured = _norm(out - reference.out) / unit
        rounded = _norm(reference.out.astype(np.float16) - reference.out) / unit
    relative = 1.02 * rounded + 2e-6
    before = _certified(reference.mass, reference.spread, reference.reach)
    # Rounding |x| <= before to f16 adds at most 2^-11 |x|, and half a subnormal step an element.
    half_step = np.where(before > 0, 2.0**-25 * np.sqrt(out.shape[-1]), 0)
    return measured, np.where(zero, before * (1 + 2.0**-11) + half_step, relative)


def _certified(mass: Array64, spread: Array64, reach: Array64) -> Array64:
    """2^-22*(4*||A|| + (4+S)*||B||), L2 over the last axis."""
    return np.asarray(2.0**-22 * (4 * _norm(mass) + (4 + reach) * _norm(spread)))


def _norm(x: Array64) -> Array64:
    return np.asarray(np.sqrt(np.square(x).sum(axis=-1)))
