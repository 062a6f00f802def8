"""Kind of fault: none. A buffer that the kernel changes in place, and a pointer that may be null."""

import numpy as np

from audit import Axis, Buffer, Launch, Operator, Reference, Source, Variant
from audit.bounds import RelL2

inout = Operator(
    "inout",
    axes=[Axis("n", 64)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "inout")],
    inputs=lambda c, r: {"x": r.normal(size=c.n), "y": np.ones(c.n)},
    references=[Reference("fp64", lambda c, i: {"y": 1 + i["x"].astype("f4").astype(float)})],
    bounds=[RelL2("y", 1e-6)],
    variants=[
        Variant("control", Source("kernels/inout.cu"), lambda c: [Launch("accumulate", (1,), (64,), 0, ("x", "y", c.n))])
    ],
)
null = Operator(
    "null",
    axes=[Axis("n", 64)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
    inputs=lambda c, r: {"x": r.normal(size=c.n)},
    references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float)})],
    bounds=[RelL2("y", 1e-6)],
    variants=[
        Variant("control", Source("kernels/inout.cu"), lambda c: [Launch("optional", (1,), (64,), 0, ("x", None, "y", c.n))])
    ],
)
