"""Layer norm of rows far from zero, where the textbook's one-pass variance loses its digits.

The bound holds from 32 elements on: the deviation of two may be as small as it likes.
"""

import numpy as np

from audit import Axis, Buffer, Launch, NoWorse, Operator, Reference, RelL2, Source, Variant


def layernorm64(case, inputs):
    x, w, b = (inputs[name].astype(np.float64) for name in ("x", "w", "b"))
    return {"y": (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * w + b}


def variant(name, **more):
    args = ("x", "w", "b", "y")
    return Variant(
        name, Source("kernels/layernorm.cu"),
        launches=lambda c: [Launch(f"layernorm_{name}", (c.rows,), (128,), 0, (*args, c.n))], **more,
    )  # fmt: skip


def inputs(case, rng):
    return {
        "x": rng.normal(30, 3, (case.rows, case.n)),
        "w": rng.normal(1, 0.1, case.n),
        "b": rng.normal(0, 0.1, case.n),
    }


layernorm = Operator(
    "layernorm",
    axes=[Axis("rows", 4, at_least=1), Axis("n", 768, at_least=32)],
    buffers=lambda c: [
        *(Buffer(name, "f32", dims, "in") for name, dims in (("x", "rows n"), ("w", "n"), ("b", "n"))),
        Buffer("y", "f32", "rows n", "out"),
    ],
    inputs=inputs,
    references=[Reference("fp64", layernorm64)],
    bounds=[RelL2("y", 1e-5)],
    variants=[
        variant("control"),
        variant("welford", parent="control", relation=NoWorse(4), note="one pass, moments joined"),
        variant("moments", parent="control", relation=NoWorse(4), note="WRONG: E[x^2] - E[x]^2 cancels"),
    ],
)
