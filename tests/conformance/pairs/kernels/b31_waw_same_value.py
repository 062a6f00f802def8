"""Kind of fault: possible false alarm: karpathy/llm.c dev/cuda/layernorm_forward.cu kernel 5."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b31_waw_same_value.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (1,), (128,), 0, ("x", "y"))]
op = Operator("b31_waw_same_value", axes=[Axis("n", 128)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": np.full(c.n, i["x"].astype("f4").astype(float).sum())})], bounds=[RelL2("y", 1e-4)],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
