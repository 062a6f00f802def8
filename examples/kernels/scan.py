"""Inclusive scan: another order of the additions, within what correct arithmetic permits."""

import numpy as np

from audit import Axis, Buffer, Forward, Launch, NoWorse, Operator, Reference, Source, Variant


def sums64(case, inputs):
    x = inputs["x"].astype(np.float64)
    return {"y": np.cumsum(x, axis=-1), "y_magnitude": np.cumsum(np.abs(x), axis=-1)}


def variant(name, **more):
    return Variant(
        name, Source("kernels/scan.cu"),
        launches=lambda c: [Launch(f"scan_{name}", (c.rows,), (128,), 0, ("x", "y", c.n))], **more,
    )  # fmt: skip


scan = Operator(
    "scan",
    axes=[Axis("rows", 3, at_least=1), Axis("n", 700, at_least=1)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(size=(c.rows, c.n))},
    references=[Reference("fp64", sums64)],
    bounds=[Forward("y", depth=lambda c: c.n)],
    variants=[
        variant("control"),
        variant("doubling", parent="control", relation=NoWorse(8), note="seven steps of doubling a tile"),
        variant("two_tiles", parent="control", relation=NoWorse(8), note="WRONG: the carry of two tiles alone"),
    ],
)
