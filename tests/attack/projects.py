"""A small project whose one kernel a test writes: `y = work(x)` by a control, and by a variant that carries a fault."""

from __future__ import annotations

from pathlib import Path

from audit import plan as planning
from audit.checks import Result
from audit.plan import Selection
from audit.project import find_project
from audit.records.run import RunRecord
from audit.run import run
from audit.spec import PACKED

DECLARATION = """
import numpy as np
from audit.spec import (
    Axis, Bound, Buffer, Launch, Line, Measured, Operator, Probe, Reference, Shape, Source, Variant,
)
from audit.bounds import RelL2


def buffers(c):
    return (
        Buffer("x", "f32", "n", "in"),
        Buffer("w", "{dtype}", "word={words}", "workspace"),
        Buffer("y", "f32", "n", "out"),
    )


def written(c, given):
    return {{"w": np.arange({words}) < {words} // 2}}


def twice(c, given):
    return {{"y": 2 * np.asarray(given["x"], np.float64)}}


def variant(name, parent=None):
    def launches(c):
        return (Launch(name, (1,), (32,), 0, ("x", "w", "y", c.n)),)

    return Variant(name, Source(f"kernels/{{name}}.cu"), launches, parent)


operator = Operator(
    "twice", axes=[Axis("n", 40)], buffers=buffers, inputs=lambda c, r: {{"x": r.normal(0, 1, c.n)}}, written=written,
    shapes=[Shape("twice")], variants=[variant("control"), variant("fast", "control")],
    references=[Reference("fp64", twice)], bounds=[RelL2("y", 1e-6)],{more}
)
"""
KERNEL = """
extern "C" __global__ void NAME(const float* x, TYPE* w, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float value = 2 * x[i];
    TAKE
    y[i] = value;
  }
  if (threadIdx.x < 4) w[threadIdx.x] = (TYPE)(threadIdx.x + 1);
}
"""
C_TYPES = {
    "f16": "__half", "f32": "float", "f64": "double", "e4m3": "unsigned char", "u8": "unsigned char", "i32": "int",
    "bf16": "unsigned short", "i8": "signed char", "i16": "short", "u16": "unsigned short",
    "e5m2": "unsigned char", "e2m1": "unsigned char", "bool": "bool", "i4": "unsigned char", "u4": "unsigned char",
    "u32": "unsigned", "i64": "long long", "u64": "unsigned long long",
}  # fmt: skip
RESTORED = '\n    steps=lambda c, x: {"live": {}, "restore": {}},'


def make(folder: Path, dtype: str, take: str, *, more: str = "") -> Path:
    """The project with `take` in the variant `fast`: a statement that may change `value`, and sees `w`, `x`, `i`."""
    (folder / "kernels").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    (folder / "kernels/twice.py").write_text(
        DECLARATION.format(dtype=dtype, more=more, words=16 if dtype in PACKED else 8)
    )
    for name, fault in (("control", ""), ("fast", take)):
        text = KERNEL.replace("NAME", name).replace("TYPE", C_TYPES[dtype]).replace("TAKE", fault)
        (folder / f"kernels/{name}.cu").write_text("#include <cuda_fp16.h>\n" + text)
    return folder


def audit(project: Path, selection: Selection | None = None) -> RunRecord:
    """The record of the project's plan, or of a part of it."""
    found = find_project(project)
    plan = planning.make_plan(found, "twice", selection or Selection(), arch="sm_90", time_limit=60)
    return run(found, plan, project / "runs", "test")[0]


def results(record: RunRecord, verdict: str, variant: str = "fast") -> dict[str, Result]:
    """The first result of each check that has the verdict."""
    found: dict[str, Result] = {}
    for one in record.audits:
        for result in one.results:
            if one.variant == variant and result.verdict == verdict:
                found.setdefault(result.check, result)
    return found
