"""RMS norm with a residual that the kernel updates in place: role `inout`."""

import numpy as np

from audit import AllClose, Axis, Bitwise, Buffer, Launch, Operator, Reference, Source, Ulps, Variant


def rmsnorm64(case, inputs):
    h = inputs["h"].astype(np.float64) + inputs["x"].astype(np.float64)
    return {"h": h, "y": h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1e-6) * inputs["w"].astype(np.float64)}


def variant(name, **more):
    args = ("h", "x", "w", "y")
    return Variant(
        name, Source("kernels/rmsnorm.cu"),
        launches=lambda c: [Launch(f"rmsnorm_{name}", (c.rows,), (128,), 0, (*args, c.n))], **more,
    )  # fmt: skip


rmsnorm = Operator(
    "rmsnorm",
    axes=[Axis("rows", 4, at_least=1), Axis("n", 576, at_least=1)],
    buffers=lambda c: [
        Buffer("h", "f32", "rows n", "inout"),
        Buffer("x", "f32", "rows n", "in"),
        Buffer("w", "f32", "n", "in"),
        Buffer("y", "f32", "rows n", "out"),
    ],
    inputs=lambda c, rng: {
        "h": rng.normal(0, 2, (c.rows, c.n)), "x": rng.normal(size=(c.rows, c.n)), "w": rng.normal(1, 0.1, c.n)
    },
    references=[Reference("fp64", rmsnorm64)],
    bounds=[AllClose("h"), AllClose("y")],
    variants=[
        variant("control"),
        variant("fused", parent="control", relation={"h": Bitwise(), "y": Ulps(4)}, note="weight and scale fused"),
        variant("unstored", parent="control", relation={"h": Bitwise(), "y": Ulps(4)}, note="WRONG: residual kept"),
    ],
)  # fmt: skip
