"""A user's layer norm, whose second variant saved a barrier that it needed."""

import numpy as np

from audit.bounds import RelL2
from audit.spec import Axis, Buffer, Launch, Operator, Reference, Source, Variant


def layernorm64(case, inputs):
    x, w, b = (inputs[name].astype(np.float32).astype(np.float64) for name in ("x", "w", "b"))
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return {"y": (x - x.mean(axis=-1, keepdims=True)) / deviation * w + b}


def variant(name, parent=None):
    return Variant(
        name, Source("kernels/layernorm.cu"), parent=parent,
        launches=lambda c: [Launch(f"layernorm_{name}", (c.rows,), (128,), 16, ("x", "w", "b", "y", c.n))],
    )  # fmt: skip


layernorm = Operator(
    "layernorm",
    axes=[Axis("rows", 4), Axis("n", 768)],
    buffers=lambda c: [
        *(Buffer(name, "f32", dims, "in") for name, dims in (("x", "rows n"), ("w", "n"), ("b", "n"))),
        Buffer("y", "f32", "rows n", "out"),
    ],
    inputs=lambda c, rng: {"x": rng.normal(1, 3, (c.rows, c.n)), "w": rng.normal(size=c.n), "b": rng.normal(size=c.n)},
    references=[Reference("fp64", layernorm64)],
    bounds=[RelL2("y", 1e-6)],
    variants=[variant("control"), variant("hasty", parent="control")],
)
