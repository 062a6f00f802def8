"""Kind of fault: ggml-org/llama.cpp#8798."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b15_oob_read_dead_lane.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (4,), (64,), 0, ("x", "y", c.n))]
op = Operator("b15_oob_read_dead_lane", axes=[Axis("n", 250)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": 2 * i["x"].astype("f4").astype(float)})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
