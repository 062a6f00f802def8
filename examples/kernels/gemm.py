"""GEMM of f16, bf16 and e4m3 with f32 accumulation; `Forward` says what error that permits."""

import numpy as np

from audit import Axis, Buffer, Forward, Launch, NoWorse, Operator, Reference, Source, Variant


def product64(case, inputs):
    a, b = (inputs[name].astype(np.float64) for name in ("a", "b"))
    return {"c": a @ b, "c_magnitude": np.abs(a) @ np.abs(b)}


def gemm(dtype, element):
    def inputs(case, rng):
        return {"a": rng.normal(size=(case.m, case.k)), "b": rng.normal(size=(case.k, case.n))}

    def variant(name, **more):
        return Variant(
            name, Source("kernels/gemm.cu", {"ELEMENT": str(element)}),
            launches=lambda c: [Launch(f"gemm_{name}", (-(-c.n // 32), c.m), (32,), 0, ("a", "b", "c", c.k, c.n))],
            **more,
        )  # fmt: skip

    return Operator(
        f"gemm_{dtype}",
        axes=[Axis("m", 5, at_least=1), Axis("n", 40, at_least=1), Axis("k", 192, at_least=1)],
        buffers=lambda c: [
            Buffer("a", dtype, "m k", "in"), Buffer("b", dtype, "k n", "in"), Buffer("c", "f32", "m n", "out")
        ],
        inputs=inputs,
        references=[Reference("fp64", product64)],
        bounds=[Forward("c", depth=lambda c: c.k)],
        variants=[
            variant("control"),
            variant("split", parent="control", relation=NoWorse(4), note="k in two halves"),
            variant("narrow", parent="control", relation=NoWorse(4), note="WRONG: accumulates in ten bits"),
        ],
    )  # fmt: skip


f16, bf16, e4m3 = gemm("f16", 1), gemm("bf16", 2), gemm("e4m3", 3)
