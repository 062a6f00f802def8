"""Kind of fault: kind: uninitialised accumulator."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b22_uninit_accumulator.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (1,), (32,), 0, ("x", "y", c.n))]
op = Operator("b22_uninit_accumulator", axes=[Axis("n", 9)], buffers=lambda c: [Buffer("x", "f32", "t=32 n k=4", "in"), Buffer("y", "f32", "t=32", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(32, c.n, 4))}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float).sum((1, 2))})], bounds=[RelL2("y", 1e-5)],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
