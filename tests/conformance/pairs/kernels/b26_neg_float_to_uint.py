"""Kind of fault: construct: (unsigned) of a negative float, 0 on a GPU."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b26_neg_float_to_uint.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (4,), (64,), 0, ("x", "y", c.n))]
op = Operator("b26_neg_float_to_uint", axes=[Axis("n", 250)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "u32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(0, 50, size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": np.trunc(np.maximum(i["x"].astype("f4").astype(float), 0))})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
