"""Dequantisation of packed int4 weights: dims count elements, two of which share a byte."""

import ml_dtypes
import numpy as np

from audit import Axis, Bound, Buffer, Launch, Measured, NoWorse, Operator, Reference, Source, Variant


def weights64(case, inputs):
    q, scale, zero = (inputs[name].astype(np.float64) for name in ("q", "scale", "zero"))
    return {"y": (q - zero[:, None]) * scale[:, None]}


def two_roundings(case, inputs, got, expected):
    """Each of the two operations rounds once: 2^-23 of the sum of the magnitudes, |q scale| + |zero scale|."""
    q, scale, zero = (np.abs(inputs[name].astype(np.float64)) for name in ("q", "scale", "zero"))
    limit = 2.0**-22 * (q + zero[:, None]) * scale[:, None] + 1e-45
    return Measured(np.abs(got["y"].astype(np.float64) - expected["y"]), limit, ("rows", "n"))


def variant(name, **more):
    args = ("q", "scale", "zero", "y")
    return Variant(
        name, Source("kernels/dequantise.cu"),
        launches=lambda c: [Launch(f"dequantise_{name}", (-(-c.n // 128), c.rows), (64,), 0, (*args, c.n // 2))],
        **more,
    )  # fmt: skip


dequantise = Operator(
    "dequantise",
    axes=[Axis("rows", 6, at_least=1), Axis("n", 320, at_least=2, multiple_of=2)],
    buffers=lambda c: [
        Buffer("q", "i4", "rows n", "in"),
        Buffer("scale", "f32", "rows", "in"),
        Buffer("zero", "f32", "rows", "in"),
        Buffer("y", "f32", "rows n", "out"),
    ],
    inputs=lambda c, rng: {
        "q": rng.integers(-8, 8, (c.rows, c.n)).astype(ml_dtypes.int4),
        "scale": rng.uniform(0.01, 0.1, c.rows),
        "zero": rng.uniform(-2, 2, c.rows),
    },
    references=[Reference("fp64", weights64)],
    bounds=[Bound("two_roundings", two_roundings)],
    variants=[
        variant("control"),
        variant("fused", parent="control", relation=NoWorse(4), note="one fused multiply-add"),
        variant("unsigned", parent="control", relation=NoWorse(4), note="WRONG: high nibbles without a sign"),
    ],
)
