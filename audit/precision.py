"""The unit roundoff of each floating-point dtype: half the distance from 1 to the next number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

UNIT_ROUNDOFF: Mapping[str, float] = {
    "f64": 2.0**-53,
    "f32": 2.0**-24,
    "f16": 2.0**-11,
    "bf16": 2.0**-8,
    "e4m3": 2.0**-4,
    "e5m2": 2.0**-3,
    "e2m1": 2.0**-2,
}
"""By the names of buffers' dtypes: 2**-p for a significand of p bits (Higham 2002, section 2.1)."""
_NUMPY = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float4_e2m1fn": "e2m1",
}


def dtype_name(dtype: np.dtype[np.generic]) -> str:
    """The name of a floating-point dtype as buffers have it; empty for any other."""
    return _NUMPY.get(dtype.name, "")


def unit_roundoff(name: str) -> float:
    """The unit roundoff of a buffer's dtype; 0 where it is not floating point."""
    return UNIT_ROUNDOFF.get(name, 0.0)


SMALLEST: Mapping[str, float] = {
    "f64": 2.0**-1074,
    "f32": 2.0**-149,
    "f16": 2.0**-24,
    "bf16": 2.0**-133,
    "e4m3": 2.0**-9,
    "e5m2": 2.0**-16,
    "e2m1": 2.0**-1,
}
"""The smallest positive number of each dtype, which is the spacing of its subnormal numbers."""
