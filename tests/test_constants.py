"""`__constant__` variables: a buffer fills one before every step, and one that nobody fills is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.backends import cuda
from audit.errors import ToolMissing

KERNEL = """
namespace filter { __constant__ float coef[4]; }
__device__ int shift;

extern "C" __global__ void weigh(const float* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = 0;
    for (int tap = 0; tap < 4; ++tap) sum += filter::coef[tap] * x[(i + tap + shift) % n];
    y[i] = sum;
  }
}
"""
DECLARATION = """
import numpy as np
from audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant

def weigh(c, given):
    x, coef = given["x"].astype(np.float64), given["filter::coef"].astype(np.float64)
    return {"y": sum(coef[tap] * np.roll(x, -tap - given["shift"][0]) for tap in range(4))}

operator = Operator(
    "weigh", axes=[Axis("n", 64)],
    buffers=lambda c: (
        Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out"),
        Buffer("filter::coef", "f32", "tap=TAPS", "constant"), Buffer("shift", "i32", "one=1", "constant"),
    ),
    inputs=lambda c, r: {
        "x": r.normal(size=c.n), "filter::coef": r.normal(size=TAPS), "shift": np.array([3], np.int32),
    },
    steps=lambda c, given: {"live": {}, "other": {"filter::coef": -given["filter::coef"]}, "restore": {}},
    variants=[Variant("control", Source("weigh.cu"), lambda c: [Launch("weigh", (1,), (32,), 0, ARGS)])],
    references=[Reference("fp64", weigh)], bounds=[RelL2("y", 1e-5)],
)
"""


def project(folder: Path, taps: int = 4, kernel: str = KERNEL, args: str = '("x", "y", c.n)') -> Path:
    (folder / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    (folder / "kernels").mkdir()
    text = DECLARATION.replace("TAPS", str(taps)).replace("ARGS", args)
    (folder / "kernels/weigh.py").write_text(text)
    (folder / "weigh.cu").write_text(kernel)
    return folder


def test_a_constant_holds_what_a_step_gives_it(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path), "run", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert audit(tmp_path, "verify", ran.json["evidence"]).code == 0
    assert audit(tmp_path, "sanitize", "--tool", "initcheck").code == 0


@pytest.mark.gpu
def test_a_constant_on_a_gpu(tmp_path: Path, audit: Any) -> None:
    try:
        cuda.require_device()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    ran = audit(project(tmp_path), "run", "--device", "cuda", "--json")
    assert ran.code == 0, ran.out + ran.err


def test_another_size_accuses_the_declaration(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path, taps=5), "run")
    assert ran.code == 3, ran.out + ran.err
    assert "constant filter::coef: the variable has 16 bytes, but the buffer has 20" in ran.out


def test_an_unknown_variable_accuses_nobody(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path, kernel=KERNEL.replace("int shift", "int shifted").replace("+ shift)", ")")), "run")
    assert ran.code == 3, ran.out + ran.err
    assert "shift" in ran.out


def test_a_constant_is_no_launch_argument(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path, args='("x", "y", "shift")'), "run")
    assert ran.code == 2
    assert "shift is a constant, which a kernel refers to by its name; leave it out" in ran.err


def test_one_that_nobody_fills_is_named(tmp_path: Path, audit: Any) -> None:
    wrong = KERNEL.replace("__device__ int", "__constant__ float scale; /* __constant__ int old; */\n__device__ int")
    ran = audit(project(tmp_path, kernel=wrong.replace("y[i] = sum", "y[i] = sum + scale")), "run", "--json")
    (one,) = json.loads((Path(ran.json["evidence"]) / "evidence.json").read_text())["audits"]
    assert [note["detail"].partition(",")[0] for note in one["notes"]] == [
        "nothing fills the __constant__ variable scale"
    ]
