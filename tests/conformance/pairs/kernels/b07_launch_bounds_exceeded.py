"""Kind of fault: kind: ggml-org/llama.cpp#16744 (invalid launch configuration)."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b07_launch_bounds_exceeded.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (4,), (256,), 0, ("x", "y", c.n))]
op = Operator("b07_launch_bounds_exceeded", axes=[Axis("n", 1024)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float)})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
