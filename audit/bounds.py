"""Bounds that any operator can use, each a ready-made `Bound`."""

from __future__ import annotations

import numpy as np

from audit.spec import Array, Bound, Case, Expected, Got, Inputs, Measured


def relative_l2(got: Array, expected: Array) -> Array:
    """||got - expected||_2 / ||expected||_2 over the last dimension, as f64.

    Where `expected` is 0 the result is ||got - expected||_2.
    """
    if got.shape != expected.shape:
        raise ValueError(f"expected an array of the shape {got.shape} of the result, but got {expected.shape}")
    error = np.linalg.norm(got.astype(np.float64) - expected, axis=-1)
    size = np.linalg.norm(expected.astype(np.float64), axis=-1)
    return np.asarray(np.where(size > 0, error / np.where(size > 0, size, 1), error))


def RelL2(name: str, limit: float, reference: str = "fp64") -> Bound:  # noqa: N802 - reads as a type in declarations
    """A bound on the relative L2 error over the last dimension, for each index of the other dimensions.

    name       output or derived value that is measured, and the reference's array of the same name
    limit      the greatest permitted ||got - expected||_2 / ||expected||_2, without a unit
    reference  name of the reference
    """

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        value = relative_l2(got[name], np.asarray(expected[name], np.float64))
        return Measured(value, np.full(value.shape, limit), ())

    return Bound(f"rel_l2({name})", measure, reference, output=name)
