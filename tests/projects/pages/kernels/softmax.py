import numpy as np
from audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant


def softmax64(case, inputs):
    x = inputs["x"].astype(np.float32).astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def variant(name, parent=None):
    return Variant(
        name,
        Source("kernels/softmax.cu"),
        parent=parent,
        launches=lambda c: [Launch(f"softmax_{name}", (c.rows,), (32,), 0, ("x", "y", c.n))],
    )


softmax = Operator(
    "softmax",
    axes=[Axis("rows", 7), Axis("n", 1000)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(0, 3, (c.rows, c.n))},
    references=[Reference("fp64", softmax64)],
    bounds=[RelL2("y", 1e-6)],
    variants=[variant("control"), variant("fast", parent="control")],
)
