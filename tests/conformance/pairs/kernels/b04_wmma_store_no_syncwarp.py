"""Kind of fault: JustVugg/colibri#1099."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b04_wmma_store_no_syncwarp.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (1,), (32,), 0, ("a", "b", "y"))]
op = Operator("b04_wmma_store_no_syncwarp", axes=[Axis("n", 16)], buffers=lambda c: [Buffer("a", "f16", "n k=16", "in"), Buffer("b", "f16", "n k=16", "in"), Buffer("y", "f32", "n k=16", "out")],
  inputs=lambda c, r: {"a": r.normal(size=(16, 16)), "b": r.normal(size=(16, 16))}, references=[Reference("fp64", lambda c, i: {"y": 2 * i["a"].astype("f2").astype(float) @ i["b"].astype("f2").astype(float).T})], bounds=[RelL2("y", 1e-5)],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
