"""Kind of fault: sgl-project/sglang#23774."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b10_full_mask_in_divergent_if.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (c.rows,), (32,), 0, ("x", "y", c.k))]
def ref(c, i): x = i["x"].astype("f4").astype(float)[:, :c.k]; return {"y": x / x.sum(1, keepdims=True)}
op = Operator("b10_full_mask_in_divergent_if", axes=[Axis("rows", 3), Axis("k", 6)], buffers=lambda c: [Buffer("x", "f32", "rows l=32", "in"), Buffer("y", "f32", "rows k", "out")],
  inputs=lambda c, r: {"x": r.uniform(0.1, 1, size=(c.rows, 32))}, references=[Reference("fp64", ref)], bounds=[RelL2("y", 1e-5)],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
