"""Histogram: counts that a kernel adds to, exact, and shares that may round."""

import numpy as np

from audit import AllClose, Axis, Bitwise, Buffer, Launch, MaxUlps, Operator, Reference, Source, Ulps, Variant


def histogram64(case, inputs):
    bins = np.floor(inputs["x"].astype(np.float64) * (case.bins // 2)).astype(np.int64) + case.bins // 2
    counts = np.bincount(bins[(bins >= 0) & (bins < case.bins)], minlength=case.bins)
    return {"count": inputs["count"].astype(np.float64) + counts, "density": counts / case.n}


def variant(name, **more):
    args = ("x", "count", "density")
    return Variant(
        name, Source("kernels/histogram.cu"),
        launches=lambda c: [Launch(f"histogram_{name}", (1,), (256,), 0, (*args, c.n, c.bins))], **more,
    )  # fmt: skip


histogram = Operator(
    "histogram",
    axes=[Axis("n", 3000, at_least=1), Axis("bins", 64, values=(2, 64, 256))],
    buffers=lambda c: [
        Buffer("x", "f32", "n", "in"),
        Buffer("count", "i32", "bins", "inout"),
        Buffer("density", "f32", "bins", "out"),
    ],
    inputs=lambda c, rng: {
        "x": rng.uniform(-1, 1, c.n), "count": rng.integers(0, 100, c.bins, dtype=np.int32)
    },
    references=[Reference("fp64", histogram64)],
    bounds=[MaxUlps("count", 0), AllClose("density")],
    variants=[
        variant("control"),
        variant("reciprocal", parent="control", relation={"count": Bitwise(), "density": Ulps(1)}, note="times 1 / n"),
        variant("truncated", parent="control", relation={"count": Bitwise(), "density": Ulps(1)}, note="WRONG at zero"),
    ],
)  # fmt: skip
