"""Kind of fault: ORNL/HeCBench#254."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b03_one_writes_all_read.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (2,), (128,), 0, ("x", "y", 256))]
op = Operator("b03_one_writes_all_read", axes=[Axis("n", 256)], buffers=lambda c: [Buffer("x", "i32", "n", "in"), Buffer("y", "i32", "n", "out")],
  inputs=lambda c, r: {"x": r.integers(0, 9, c.n, dtype=np.int32)}, references=[Reference("fp64", lambda c, i: {"y": (i["x"].reshape(2, 128).sum(1)[:, None] + np.arange(128)).reshape(-1)})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
