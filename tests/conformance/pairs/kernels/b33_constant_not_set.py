"""Kind of fault: construct: __constant__ filled by the host (samples convolutionSeparable)."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b33_constant_not_set.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

L = lambda k: lambda c: [Launch(k, (1,), (128,), 0, ("x", "y", c.n))]
op = Operator("b33_constant_not_set", axes=[Axis("n", 128)], buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
  inputs=lambda c, r: {"x": np.abs(r.normal(size=c.n))}, variants=[v("good", L("good")), v("bad", L("bad"), "good")])
