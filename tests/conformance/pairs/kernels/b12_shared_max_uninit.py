"""Kind of fault: m0at/rvllm#1 kind; vllm-project/vllm#50201 (uninitialised shared memory)."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b12_shared_max_uninit.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (c.rows,), (128,), 0, ("x", "y", c.n))]
op = Operator("b12_shared_max_uninit", axes=[Axis("rows", 8), Axis("n", 200)], buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(c.rows, c.n))}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float).max(1)})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
