"""Kind of fault: NVIDIA/cuCollections#337."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b13_vote_is_no_fence.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (4,), (32,), 0, ("x", "y"))]
op = Operator("b13_vote_is_no_fence", axes=[Axis("n", 128)], buffers=lambda c: [Buffer("x", "i32", "n", "in"), Buffer("y", "i32", "n", "out")],
  inputs=lambda c, r: {"x": r.integers(1, 9, c.n, dtype=np.int32)}, references=[Reference("fp64", lambda c, i: {"y": i["x"].reshape(4, 32)[:, ::-1].reshape(-1) + 1})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
