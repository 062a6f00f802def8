"""Bounds that any operator can use, each a ready-made `Bound`.

Each has defaults by the dtype of the result, and says where they come from. All compute in f64. Where a result is NaN,
none of them passes; infinity passes only where the same infinity is expected, and only in `AllClose` and `MaxUlps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from audit import formats
from audit.errors import ProjectError
from audit.precision import SMALLEST, UNIT_ROUNDOFF, dtype_name
from audit.spec import DTYPES, Array, Bound, Case, Expected, Got, Inputs, Measured

_TORCH: Mapping[str, tuple[float, float]] = {
    "f16": (1e-5, 1e-3),
    "bf16": (1e-5, 1.6e-2),
    "f32": (1e-5, 1.3e-6),
    "f64": (1e-7, 1e-7),
}
_FAITHFUL, _FOUR = ("f16", "bf16", "e4m3", "e5m2", "e2m1"), 4
_LARGEST_DEPTH = 0.5  # of n * u, beyond which gamma says nothing


def relative_l2(got: Array, expected: Array) -> Array:
    """||got - expected||_2 / ||expected||_2 over the last dimension, as f64.

    Where `expected` is 0 the result is ||got - expected||_2. Raises ValueError for arrays of different shapes.
    """
    if got.shape != expected.shape:
        raise ValueError(f"expected an array of the shape {got.shape} of the result, but got {expected.shape}")
    error = np.linalg.norm(got.astype(np.float64) - expected, axis=-1)
    size = np.linalg.norm(expected.astype(np.float64), axis=-1)
    return np.asarray(np.where(size > 0, error / np.where(size > 0, size, 1), error))


def RelL2(name: str, limit: float | None = None, reference: str = "fp64") -> Bound:  # noqa: N802 - reads as a type
    """A bound on the relative L2 error over the last dimension, for each index of the other dimensions.

    name       output or derived value that is measured, and the reference's array of the same name
    limit      the greatest permitted ||got - expected||_2 / ||expected||_2, without a unit. By default the `rtol` of
               `AllClose` for the dtype of the result: where every element keeps it, the norm does
    reference  name of the reference
    """

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine, right, dtype = _both(name, got, expected)
        value = relative_l2(np.atleast_1d(mine), np.atleast_1d(right))
        return Measured(value, np.full(value.shape, _tolerances(dtype)[1] if limit is None else limit), ())

    return Bound(f"rel_l2({name})", measure, reference, output=name)


def AllClose(  # noqa: N802 - reads as a type
    name: str, atol: float | None = None, rtol: float | None = None, reference: str = "fp64"
) -> Bound:
    """A bound on each element: |got - expected| <= atol + rtol * |expected|. The same infinity on both sides passes.

    The defaults are those of `torch.testing.assert_close` for the dtype of the result: rtol 1e-3 and atol 1e-5 for f16,
    1.6e-2 and 1e-5 for bf16, 1.3e-6 and 1e-5 for f32, 1e-7 and 1e-7 for f64, 0 and 0 for integers. For e4m3, e5m2 and
    e2m1, which it does not list, rtol is the unit roundoff u (2**-4, 2**-3 and 2**-2) and atol half of the smallest
    positive number: what one correct rounding permits.

    name       output or derived value that is measured, and the reference's array of the same name
    atol       the absolute tolerance, in the unit of the result
    rtol       the relative tolerance, without a unit
    reference  name of the reference
    """

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine, right, dtype = _both(name, got, expected)
        usual = _tolerances(dtype) if atol is None or rtol is None else (0.0, 0.0)
        absolute, relative = (usual[0] if atol is None else atol), (usual[1] if rtol is None else rtol)
        value = _apart(mine, right, got[name], expected[name])
        return Measured(value, np.where(np.isfinite(right), absolute + relative * np.abs(right), 0.0), ())

    return Bound(f"all_close({name})", measure, reference, output=name)


def MaxUlps(name: str, n: int | None = None, reference: str = "fp64") -> Bound:  # noqa: N802 - reads as a type
    """A bound on each element: at most `n` representable numbers from the reference, rounded to the result's dtype.

    name       output or derived value that is measured, and the reference's array of the same name
    n          the greatest permitted distance in units in the last place. By default 1 for f16, bf16, e4m3, e5m2 and
               e2m1: faithful rounding, one of the two neighbours of the exact value (Muller et al., Handbook of
               Floating-Point Arithmetic, section 2.2). 4 for f32 and f64, as GoogleTest's EXPECT_FLOAT_EQ and
               EXPECT_DOUBLE_EQ. 0 for integers
    reference  name of the reference
    """

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine, right, dtype = _both(name, got, expected)
        limit = (0 if not dtype else 1 if dtype in _FAITHFUL else _FOUR) if n is None else n
        if not dtype:
            value = _apart(mine, right, got[name], expected[name])
            return Measured(value, np.full(value.shape, float(limit)), ())
        rounded = formats.encoded(dtype, right)
        steps = formats.ulp_distance(mine.astype(DTYPES[dtype]), np.asarray(rounded).view(DTYPES[dtype]))
        odd = np.isnan(mine) | np.isnan(right) | (np.isinf(mine) & (mine != right))
        value = np.where(odd, np.inf, steps.astype(np.float64))
        return Measured(value, np.full(value.shape, float(limit)), ())

    return Bound(f"max_ulps({name})", measure, reference, output=name)


def Cosine(name: str, limit: float | None = None, reference: str = "fp64") -> Bound:  # noqa: N802 - reads as a type
    """A bound on 1 - cos of the angle to the reference over the last dimension. It is blind to scale: add another one.

    It is computed without cancellation, as half of the squared distance of the two unit vectors.

    name       output or derived value that is measured, and the reference's array of the same name
    limit      the greatest permitted 1 - cos. By default rtol**2 / 2 with the `rtol` of `AllClose` for the dtype of the
               result: what an error of that relative size, at right angles, takes
    reference  name of the reference
    """

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine, right, dtype = _both(name, got, expected)
        one, other = _units(np.atleast_1d(mine)), _units(np.atleast_1d(right))
        value = np.square(np.linalg.norm(one - other, axis=-1)) / 2
        permitted = _tolerances(dtype)[1] ** 2 / 2 if limit is None else limit
        return Measured(value, np.full(value.shape, permitted), ())

    return Bound(f"cosine({name})", measure, reference, output=name)


def Forward(  # noqa: N802 - reads as a type
    name: str,
    depth: int | Callable[[Case], int],
    accumulate: str = "f32",
    reference: str = "fp64",
    magnitude: str | None = None,
) -> Bound:
    """The error that correct arithmetic permits in a sum of products, from the number of roundings on its longest way.

    |got - expected| <= gamma_n * m + u_r * (|expected| + gamma_n * m) + the rounding of subnormal numbers, where
    gamma_n = n*u / (1 - n*u) (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and
    3.5), u is the unit roundoff of the accumulator, u_r that of the result, and m the sum of the absolute values of the
    terms. It holds for every order of the sum, so that any tree, split or reordering of at most that depth keeps it.
    The reference's own error, gamma_n of f64, is added.

    name        output or derived value that is measured, and the reference's array of the same name
    depth       n, the greatest number of roundings between an input and the result: K for a dot product of K terms. An
                integer, or a function of the case
    accumulate  dtype of the sums: f64, f32, f16 or bf16
    reference   name of the reference
    magnitude   the reference's array with m, of the result's shape; by default `NAME_magnitude`. ProjectError where the
                reference does not return it
    """
    key = magnitude or f"{name}_magnitude"
    if accumulate not in UNIT_ROUNDOFF:
        raise ProjectError(f"Forward({name!r}): accumulate: expected one of {', '.join(UNIT_ROUNDOFF)}, but got "
                           f"{accumulate!r}")  # fmt: skip

    def measure(case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        mine, right, dtype = _both(name, got, expected)
        if key not in expected:
            raise ProjectError(
                f"bound forward({name}): expected the array {key!r} from reference {reference}, but it returns "
                f"{', '.join(expected)}; return the sum of the absolute values of the terms, such as "
                f"abs(a) @ abs(b) where {name} is a @ b"
            )
        size = np.asarray(expected[key], np.float64)
        if size.shape != right.shape:
            raise ProjectError(f"bound forward({name}): expected {key!r} of shape {right.shape}, but got {size.shape}")
        n = depth(case) if callable(depth) else depth
        sums = _gamma(name, n, accumulate) * size + n * SMALLEST[accumulate] / 2
        own = _gamma(name, n, "f64") * size
        rounding = UNIT_ROUNDOFF.get(dtype, 0.5) * (np.abs(right) + sums) + SMALLEST.get(dtype, 0.0) / 2
        return Measured(_apart(mine, right, got[name], expected[name]), sums + own + rounding, ())

    return Bound(f"forward({name})", measure, reference, output=name)


def _gamma(name: str, n: int, dtype: str) -> float:
    """gamma_n = n*u / (1 - n*u)."""
    used = n * UNIT_ROUNDOFF[dtype]
    if not 0 <= used <= _LARGEST_DEPTH:
        raise ProjectError(
            f"bound forward({name}): expected a depth from 0 to {_LARGEST_DEPTH / UNIT_ROUNDOFF[dtype]:,.0f} for sums "
            f"in {dtype}, beyond which nothing can be promised, but got {n:,}"
        )
    return used / (1 - used)


def _both(name: str, got: Got, expected: Expected) -> tuple[Array, Array, str]:
    """The result and what is expected, in f64 and of one shape, and the result's floating-point dtype or nothing."""
    for side, arrays in (("result", got), ("array of the reference", expected)):
        if name not in arrays:
            raise ProjectError(f"expected a {side} named {name!r}, but got {', '.join(arrays) or 'none'}")
    stored, right = np.asarray(got[name]), np.asarray(expected[name]).astype(np.float64)
    if stored.shape != right.shape:
        raise ProjectError(f"{name}: expected the reference to have its shape {stored.shape}, but got {right.shape}")
    return stored.astype(np.float64), right, dtype_name(stored.dtype)


def _apart(mine: Array, right: Array, stored: Array, expected: Array) -> Array:
    """|mine - right|: 0 where both are the same infinity, and at least 1 where integers differ that f64 cannot tell
    apart."""
    apart = np.where(mine == right, 0.0, np.abs(mine - right))
    integers = all(np.asarray(each).dtype.kind in "iu" for each in (stored, expected))
    unequal = np.asarray(stored) != np.asarray(expected)
    return np.asarray(np.maximum(apart, unequal) if integers else apart)


def _tolerances(dtype: str) -> tuple[float, float]:
    """atol and rtol by default."""
    if dtype in _TORCH:
        return _TORCH[dtype]
    return (SMALLEST[dtype] / 2, UNIT_ROUNDOFF[dtype]) if dtype else (0.0, 0.0)


def _units(rows: Array) -> Array:
    """Each row divided by its norm; a row of zeros stays one."""
    largest = np.abs(rows).max(axis=-1, initial=0.0, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(norm > 0, norm, 1))
