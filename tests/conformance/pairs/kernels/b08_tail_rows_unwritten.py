"""Kind of fault: pytorch/FBGEMM#5754."""

import numpy as np
from audit.bounds import RelL2
from audit.spec import *

def v(name, launches, parent=None):
    return Variant(name, Source("kernels/b08_tail_rows_unwritten.cu"), parent=parent, launches=launches)

def exact(name):
    def measure(case, inputs, got, expected):
        g, x = got[name].astype(np.float64), np.asarray(expected[name], np.float64)
        d = np.where(g == x, 0, np.abs(g - x))
        return Measured(d, np.zeros_like(d), tuple(f"axis{k}" for k in range(d.ndim)))
    return Bound("exact", measure)

LEN = np.array([2, 7, 3], np.int32); OFF = np.array([0, 2, 9], np.int32)
def ref(c, i):
    y = np.zeros((12, 8)); g = i["g"].astype("f4").astype(float)
    for s, (n, o) in enumerate(zip(LEN, OFF)): m = min(n, 4); y[o:o + m] = g[s, :m]
    return {"y": y}
L = lambda k: lambda c: [Launch(k, (3,), (32,), 0, ("g", "len", "off", "y", 4, 8))]
op = Operator("b08_tail_rows_unwritten", axes=[Axis("s", 3)], buffers=lambda c: [Buffer("g", "f32", "s m=4 d=8", "in"), Buffer("len", "i32", "s", "in"), Buffer("off", "i32", "s", "in"), Buffer("y", "f32", "t=12 d=8", "out")],
  inputs=lambda c, r: {"g": r.normal(size=(3, 4, 8)), "len": LEN, "off": OFF}, references=[Reference("fp64", ref)], bounds=[exact("y")],
  variants=[v("good", L("good")), v("bad", L("bad"), "good")])
