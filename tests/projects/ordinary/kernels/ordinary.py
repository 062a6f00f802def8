"""Operators whose kernels have ordinary habits, each with a right variant and, where a name says so, a wrong one."""

import numpy as np

from audit.bounds import RelL2
from audit.spec import Axis, Bound, Buffer, Launch, Measured, Operator, Reference, Source, Variant

CODE = Source("kernels/ordinary.cu")


def variant(name, *launches, parent=None):
    return Variant(name, CODE, lambda case: [launch(case) for launch in launches], parent=parent)


def kernel(entry, *buffers, threads=64, blocks=None):
    def launch(case):
        return Launch(entry, (blocks or -(-case.n // threads),), (threads,), 0, (*buffers, case.n))

    return launch


def exact(case, inputs, got, expected):
    error = np.abs(got["y"].astype(np.float64) - expected["y"])
    return Measured(error, np.zeros_like(error), ("n",))


def f32(x):
    return x.astype(np.float32).astype(np.float64)


quantise = Operator(
    "quantise",
    axes=[Axis("n", 1000)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "u8", "n", "out")],
    inputs=lambda c, rng: {"x": rng.uniform(-20, 300, c.n)},
    references=[Reference("fp64", lambda c, i: {"y": np.trunc(np.clip(f32(i["x"]), 0, 255))})],
    bounds=[Bound("exact", exact)],
    variants=[
        variant("control", kernel("quantise", "x", "y")),
        variant("wider", kernel("quantise", "x", "y", threads=256), parent="control"),
        variant("twice", kernel("quantise_twice", "x", "y", blocks=2), parent="control"),
        variant("last_missing", kernel("quantise_most", "x", "y"), parent="control"),
        variant("itself", kernel("quantise", "x", "y"), parent="control"),
    ],
)

accumulate = Operator(
    "accumulate",
    axes=[Axis("n", 250)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "inout")],
    inputs=lambda c, rng: {"x": rng.normal(size=c.n), "y": rng.normal(size=c.n)},
    references=[Reference("fp64", lambda c, i: {"y": f32(i["y"]) + f32(i["x"])})],
    bounds=[RelL2("y", 1e-6)],
    variants=[
        variant("control", kernel("accumulate", "x", "y")),
        variant("wider", kernel("accumulate", "x", "y", threads=128), parent="control"),
        variant("half", kernel("accumulate_half", "x", "y"), parent="control"),
        variant("nothing", kernel("nothing", "x", "y"), parent="control"),
    ],
)

mask = Operator(
    "mask",
    axes=[Axis("n", 250)],
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(size=c.n)},
    nonfinite=lambda c, i: {"y": np.arange(c.n) % 3 == 2},
    references=[Reference("fp64", lambda c, i: {"y": np.where(np.arange(c.n) % 3 == 2, 0, f32(i["x"]))})],
    bounds=[
        Bound(
            "unmasked",
            lambda c, i, got, e: Measured(
                np.abs(np.where(np.arange(c.n) % 3 == 2, 0, got["y"]) - e["y"]), np.zeros(c.n), ("n",)
            ),
        )
    ],
    variants=[
        variant("control", kernel("mask", "x", "y")),
        variant("too_many", kernel("mask_all", "x", "y"), parent="control"),
    ],
)

total = Operator(
    "total",
    axes=[Axis("n", 17)],
    buffers=lambda c: [
        Buffer("x", "f32", "k=8 n", "in"),
        Buffer("p", "f32", "k=8", "workspace"),
        Buffer("y", "f32", "one=1", "out"),
    ],
    inputs=lambda c, rng: {"x": rng.normal(size=(8, c.n))},
    references=[Reference("fp64", lambda c, i: {"y": f32(i["x"]).sum().reshape(1)})],
    bounds=[RelL2("y", 1e-4)],
    variants=[
        variant(
            name,
            kernel(entry, "x", "p", blocks=8, threads=1),
            lambda c: Launch("total", (1,), (1,), 0, ("p", "y", 8)),
            parent=parent,
        )
        for name, entry, parent in (
            ("control", "partial_sums", None),
            ("by_two", "partial_sums_by_two", "control"),
        )
    ],
)
