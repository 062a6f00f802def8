"""Kind of fault: ml-explore/mlx#3858, #2267."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b05_grid_y_65536.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

op = Operator("b05_grid_y_65536", axes=[Axis("n", 65536)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=c.n)}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float)})], bounds=[exact("y")],
  variants=[v("good", lambda c: [Launch("good", (c.n,), (1,), 0, ("x", "y", c.n))]), v("bad", lambda c: [Launch("bad", (1, c.n), (1,), 0, ("x", "y", c.n))], "good")])
