"""Kind of fault: vllm-project/vllm#45466 (#41257)."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b01_misaligned_f4_store.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (c.rows,), (32,), 0, ("x", "y", c.n))]
op = Operator("b01_misaligned_f4_store", axes=[Axis("rows", 5), Axis("n", 46)], buffers=lambda c: [Buffer("x", "f16", "rows p=48", "in"), Buffer("y", "f16", "rows n", "out")],
  inputs=lambda c, r: {"x": r.normal(size=(c.rows, 48))}, references=[Reference("fp64", lambda c, i: {"y": i["x"].astype(np.float16)[:, :c.n].astype(float)})], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
