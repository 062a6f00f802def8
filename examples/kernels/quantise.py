"""Quantisation to e4m3 with a scale a row: a product instead of a quotient moves a code by one step at most."""

import numpy as np

from audit import Axis, Bitwise, Bound, Buffer, Launch, Measured, Operator, Source, Ulps, Variant


def half_a_step(case, inputs, got, expected):
    """|q scale - x| is at most half the distance of two e4m3 numbers: 2^-4 of x, at least 2^-10 of the scale."""
    scale = got["scale"].astype(np.float64)[:, None]
    x = inputs["x"].astype(np.float64)
    limit = np.maximum(np.abs(x) / 16, scale / 1024) * (1 + 1e-6)
    return Measured(np.abs(got["q"].astype(np.float64) * scale - x), limit, ("rows", "n"))


def variant(name, **more):
    args = ("x", "q", "scale")
    return Variant(
        name, Source("kernels/quantise.cu"),
        launches=lambda c: [Launch(f"quantise_{name}", (c.rows,), (128,), 0, (*args, c.n))], **more,
    )  # fmt: skip


quantise = Operator(
    "quantise",
    axes=[Axis("rows", 6, at_least=1), Axis("n", 320, at_least=1)],
    buffers=lambda c: [
        Buffer("x", "f32", "rows n", "in"),
        Buffer("q", "e4m3", "rows n", "out"),
        Buffer("scale", "f32", "rows", "out"),
    ],
    inputs=lambda c, rng: {"x": rng.normal(0, 5, (c.rows, c.n))},
    bounds=[Bound("half_a_step", half_a_step, reference="")],
    variants=[
        variant("control"),
        variant("reciprocal", parent="control", relation={"q": Ulps(1), "scale": Bitwise()}, note="times 1 / scale"),
        variant("signed", parent="control", relation={"q": Ulps(1), "scale": Bitwise()}, note="WRONG: max x, not |x|"),
    ],
)
