"""Rotary embedding of queries, in place."""

import numpy as np

from audit import AllClose, Axis, Buffer, Launch, Operator, Reference, Source, Variant, Within


def rotary64(case, inputs):
    q, c, s = (inputs[name].astype(np.float64) for name in ("q", "cosine", "sine"))
    a, b = np.split(q, 2, axis=-1)
    return {"q": np.concatenate([a * c - b * s, b * c + a * s], axis=-1)}


def inputs(case, rng):
    angle = np.outer(np.arange(case.rows), 10_000.0 ** (-np.arange(case.dim // 2) / (case.dim // 2)))
    return {"q": rng.normal(size=(case.rows, case.dim)), "cosine": np.cos(angle), "sine": np.sin(angle)}


def variant(name, **more):
    args = ("q", "cosine", "sine")
    return Variant(
        name, Source("kernels/rotary.cu"),
        launches=lambda c: [Launch(f"rotary_{name}", (c.rows,), (64,), 0, (*args, c.dim))], **more,
    )  # fmt: skip


rotary = Operator(
    "rotary",
    axes=[Axis("rows", 9, at_least=1), Axis("dim", 96, at_least=2, multiple_of=2)],
    buffers=lambda c: [
        Buffer("q", "f32", "rows dim", "inout"),
        Buffer("cosine", "f32", f"rows half={c.dim // 2}", "in"),
        Buffer("sine", "f32", f"rows half={c.dim // 2}", "in"),
    ],
    inputs=inputs,
    references=[Reference("fp64", rotary64)],
    bounds=[AllClose("q")],
    variants=[
        variant("control"),
        variant("fused", parent="control", relation=Within(atol=1e-6, rtol=1e-6), note="one rounding fewer"),
        variant("overwritten", parent="control", relation=Within(atol=1e-6, rtol=1e-6), note="WRONG: reads its result"),
    ],
)
