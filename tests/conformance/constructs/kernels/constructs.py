"""One operator for each CUDA construct: a small kernel, and in `constructs.json` its inputs and its reference.

`gen` and `ref` are numpy expressions, of the case `c` and the generator `rng`, and of the input `x` in FP64.
"""

import json
import math
from pathlib import Path

import numpy as np

from audit import Axis, Bound, Buffer, Launch, Measured, Operator, Reference, Source, Variant

STORAGE = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "u32": np.uint32,
    "u8": np.uint8, "e4m3": np.uint8, "i64": np.int64, "u64": np.uint64,
}  # fmt: skip


def sp(f, x):
    return np.array([f(v) for v in x], np.float64)


def sp2(f, x):
    return np.array([f(list(b)) for b in x.reshape(-1, 32)], np.float64).reshape(-1)


def erfinv(v):
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < v else (low, middle)
    return low


def signed_byte(a, k):
    b = (int(a) >> (8 * k)) & 255
    return b - 256 * (b > 127)


def vsubss4(a):
    r = 0
    for k in range(4):
        r |= (max(-128, min(127, signed_byte(a, k) - 1)) & 255) << (8 * k)
    return r - (1 << 32) * (r >> 31)


def bperm(a):
    b = [(int(a) >> (8 * k)) & 255 for k in range(4)] + [(0x11223344 >> (8 * k)) & 255 for k in range(4)]
    r = b[1] | b[3] << 8 | b[5] << 16 | b[7] << 24
    return r - (1 << 32) * (r >> 31)


def operator(one):
    known = {"np": np, "math": math, "sp": sp, "sp2": sp2, "erfinv": erfinv, "vsubss4": vsubss4, "bperm": bperm}
    storage = STORAGE[one["idt"]]

    def inputs(c, rng):
        return {"x": np.asarray(eval(one["gen"], {**known, "c": c, "rng": rng})).astype(storage)}

    def reference(c, inputs):
        x = inputs["x"].astype(storage).astype(np.float64)
        return {"y": np.asarray(eval(one["ref"], {**known, "c": c, "x": x}), np.float64).reshape(-1)}

    def measure(c, inputs, got, expected):
        g, e = got["y"].astype(np.float64), expected["y"]
        error = np.abs(g - e) / np.maximum(np.abs(e), 1)
        return Measured(np.where(g == e, 0, error), np.full(g.shape, one["tol"]), ("i",))

    return Operator(
        one["name"],
        axes=[Axis("n", one["n"]), Axis("m", one["m"])],
        buffers=lambda c: [Buffer("x", one["idt"], "n", "in"), Buffer("y", one["odt"], "m", "out")],
        inputs=inputs,
        references=[Reference("fp64", reference)],
        bounds=[Bound("abs", measure)],
        variants=[
            Variant(
                "control",
                Source(f"kernels/{one['name']}.cu"),
                lambda c: [Launch(one["entry"], (one["grid"],), (one["block"],), one["shared"], ("x", "y", c.n))],
                status="control",
            )
        ],
    )


TABLE = json.loads((Path(__file__).parents[1] / "constructs.json").read_text())
globals().update({f"op_{one['name']}": operator(one) for one in TABLE})
