"""Kind of fault: PaddlePaddle/FastDeploy#8012."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b16_oob_sin_offset.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (c.n,), (32,), 0, ("x", "cs", "y", c.n, 16, 64))]
def ref(c, i):
    x, cs = i["x"].astype("f4").astype(float), i["cs"].astype("f4").astype(float); a, b = x[:, :8], x[:, 8:]
    return {"y": np.concatenate([a * cs[0] - b * cs[1], b * cs[0] + a * cs[1]], 1)}
op = Operator("b16_oob_sin_offset", axes=[Axis("n", 12)], buffers=lambda c: [Buffer("x", "f32", "n d=16", "in"), Buffer("cs", "f32", "two=2 n h=8", "in"), Buffer("y", "f32", "n d=16", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(c.n, 16)), "cs": np.stack([np.ones((c.n, 8)), np.zeros((c.n, 8))])}, references=[Reference("fp64", ref)], bounds=[RelL2("y", 1e-6)],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
