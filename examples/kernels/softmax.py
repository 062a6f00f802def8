"""Softmax over rows: the online form is as accurate as the two passes, not the same."""

import numpy as np

from audit import AllClose, Axis, Buffer, Launch, NoWorse, Operator, Reference, Source, Variant


def softmax64(case, inputs):
    x = inputs["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def variant(name, **more):
    return Variant(
        name, Source("kernels/softmax.cu"),
        launches=lambda c: [Launch(f"softmax_{name}", (c.rows,), (128,), 0, ("x", "y", c.n))], **more,
    )  # fmt: skip


softmax = Operator(
    "softmax",
    axes=[Axis("rows", 7, at_least=1), Axis("n", 1000, at_least=1)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(0, 3, (c.rows, c.n))},
    references=[Reference("fp64", softmax64)],
    bounds=[AllClose("y")],
    variants=[
        variant("control"),
        variant("online", parent="control", relation=NoWorse(4), note="one pass for maximum and sum"),
        variant("unshifted", parent="control", relation=NoWorse(4), note="WRONG: overflows for large inputs"),
    ],
)
