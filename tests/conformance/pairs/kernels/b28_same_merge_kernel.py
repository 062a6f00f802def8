"""Kind of fault: FALSE ALARM: split kernel changed, merge kernel kept."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b28_same_merge_kernel.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (8,), (1,), 0, ("x", "p", c.n)), Launch("merge", (1,), (1,), 0, ("p", "y", 8))]
op = Operator("b28_same_merge_kernel", axes=[Axis("n", 16)], buffers=lambda c: [Buffer("x", "f32", "k=8 n", "in"), Buffer("p", "f32", "k=8", "workspace"), Buffer("y", "f32", "o=1", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(8, c.n))}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float).sum(keepdims=True).reshape(1)})], bounds=[RelL2("y", 1e-4)],
  variants=[v("good", L("part_a")), v("bad", L("part_b"), "good")])
