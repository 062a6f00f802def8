"""Kind of fault: ROCm/aiter#4622 (atomic combine of splits)."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b14_float_atomic_splitk.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

op = Operator("b14_float_atomic_splitk", axes=[Axis("n", 32), Axis("k", 64)], buffers=lambda c: [Buffer("x", "f32", "k n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(c.k, c.n))}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float).sum(0)})], bounds=[RelL2("y", 1e-5)],
  variants=[v("good", lambda c: [Launch("zero", (1,), (32,), 0, ("y", c.n)), Launch("good", (1,), (32,), 0, ("x", "y", c.n, c.k))]), v("bad", lambda c: [Launch("zero2", (1,), (32,), 0, ("y", c.n)), Launch("bad", (c.k,), (32,), 0, ("x", "y", c.n, c.k))], "good")])
