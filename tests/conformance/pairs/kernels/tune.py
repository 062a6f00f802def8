"""Kind of fault: none."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/tune.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

def v(name, defines, grid, block, parent=None): return Variant(name, Source("kernels/tune.cu", defines), parent=parent, launches=lambda c: [Launch("scale", grid, block, 0, ("x", "y", c.n))])
tune = Operator("tune", axes=[Axis("n", 1000)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")], inputs=lambda c, r: {"x": r.normal(size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": 2 * i["x"].astype("f4").astype(float)})], bounds=[RelL2("y", 1e-6)],
  variants=[v("control", {}, (4,), (64,)), v("wider", {}, (2,), (256,), "control"), v("unrolled", {"UNROLL": "4"}, (4,), (64,), "control")])
