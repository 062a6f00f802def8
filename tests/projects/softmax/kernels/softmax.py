"""A user's softmax: a control, a faster variant that keeps its bytes, and one that does not."""

import numpy as np

from audit.bounds import RelL2
from audit.spec import Axis, Buffer, Launch, Line, Operator, Reference, Source, Variant


def softmax64(case, inputs):
    x = inputs["x"].astype(np.float32).astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def variant(name, parent=None):
    return Variant(
        name, Source(f"kernels/{name}.cu"), parent=parent,
        launches=lambda c: [Launch(f"softmax_{name}", (c.rows,), (128,), 0, ("x", "y", c.n))],
    )  # fmt: skip


softmax = Operator(
    "softmax",
    axes=[Axis("rows", 7), Axis("n", 33, at_least=1)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(0, 3, (c.rows, c.n))},
    variants=[variant("control"), variant("fast", "control"), variant("wrong", "control")],
    references=[Reference("fp64", softmax64)],
    bounds=[RelL2("y", 1e-6)],
    plan={"softmax": [Line({"n": n}) for n in (1, 33, 4096)]},
)
