"""One sum in several launches, in a cooperative one, in a cluster, with much shared memory, and from a cubin."""

from pathlib import Path

import numpy as np

from audit import Axis, Buffer, Launch, Machine, Operator, Reference, RelL2, Source, Variant

BLOCKS, THREADS, SHARED = 8, 128, 96 * 1024
CODE = Source("kernels/total.cu")
ADD = Launch("add", (BLOCKS,), (THREADS,), args=("x", "partial", "y"))
FINE = ("x", "partial", "y")


def control(case):
    return [Launch("sums", (BLOCKS,), (THREADS,), args=("x", "partial")), ADD]


variants = [
    Variant("control", CODE, control, status="control"),
    Variant("cooperative", CODE, parent="control",
            launches=lambda case: [Launch("together", (BLOCKS,), (THREADS,), args=FINE, cooperative=True)]),
    Variant("clustered", CODE, parent="control",
            launches=lambda case: [Launch("clustered", (BLOCKS,), (THREADS,), args=FINE, cluster=(BLOCKS,))]),
    Variant("large", CODE, parent="control",
            launches=lambda case: [
                Launch("large", (BLOCKS,), (THREADS,), SHARED, ("x", "partial", SHARED // 4)), ADD]),
]  # fmt: skip
if Path(__file__).with_name("total.cubin").exists():
    compiled = Machine("kernels/total.cubin", {"whole": "together"})
    variants.append(
        Variant("compiled", compiled, parent="control",
                launches=lambda case: [Launch("whole", (BLOCKS,), (THREADS,), args=FINE, cooperative=True)])
    )  # fmt: skip

total = Operator(
    "total",
    axes=[Axis("n", BLOCKS * THREADS), Axis("blocks", BLOCKS)],
    buffers=lambda case: [
        Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out"), Buffer("partial", "f32", "blocks", "workspace"),
    ],
    inputs=lambda case, rng: {"x": rng.normal(size=case.n).astype(np.float32)},
    references=[Reference("fp64", lambda case, given: {"y": given["x"] + np.sum(given["x"], dtype=np.float64)})],
    bounds=[RelL2("y", 1e-5)],
    variants=variants,
)  # fmt: skip
