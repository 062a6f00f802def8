"""Bounds that any operator can use; `audit.spec.Bound` is what they are."""

from __future__ import annotations

import numpy as np

from audit.spec import Array, Bound, Case, Expected, Got, Inputs, Measured


def relative_l2(got: Array, expected: Array) -> Array:
    """||got - expected||_2 / ||expected||_2 over the last dimension, f64; the absolute norm where expected is 0."""
    error = np.linalg.norm(got.astype(np.float64) - expected, axis=-1)
    size = np.linalg.norm(expected.astype(np.float64), axis=-1)
    return np.asarray(np.where(size > 0, error / np.where(size > 0, size, 1), error))


def RelL2(name: str, limit: float, reference: str = "fp64") -> Bound:  # noqa: N802 - reads as a type in declarations
    """Relative L2 error of the output `name`, over its last dimension, for each index of the others."""

    def measure(_case: Case, _inputs: Inputs, got: Got, expected: Expected) -> Measured:
        value = relative_l2(got[name], np.asarray(expected[name], np.float64))
        dims = tuple(f"axis{i}" for i in range(value.ndim))
        return Measured(value, np.full(value.shape, limit), dims)

    return Bound(f"rel_l2({name})", measure, reference)
