"""Launch arguments of every kind reach a kernel: a stranger's kernel checks each, on the CPU and on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit.backends import cuda
from audit.errors import ToolMissing

KERNEL = """
#include <cuda_fp16.h>
struct Window { float* rows; int first; double scale; unsigned char flags[3]; };
struct Pair { short a; float b; };

extern "C" __global__ void gather(float* const* rows, float* y, bool keep, signed char c, unsigned char u, short s,
                                  unsigned short t, __half h, Pair pair, Window window, int n) {
  bool right = keep && c == -5 && u == 250 && s == -300 && t == 60000 && __half2float(h) == 1.5f && pair.a == 7 &&
               pair.b == 0.25f && window.scale == 3.0 && window.flags[2] == 9 && rows[2] == nullptr;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[i] = right ? rows[0][i] + rows[1][i] + window.rows[window.first + i] : 0;
}
"""
DECLARATION = """
import numpy as np
from audit import At, Axis, Buffer, Launch, Operator, Pointers, Reference, RelL2, Source, Struct, Variant

PAIR = np.dtype([("a", np.int16), ("b", np.float32)], align=True)
WINDOW = np.dtype([("rows", np.uint64), ("first", np.int32), ("scale", np.float64), ("flags", np.uint8, 3)], align=True)

def launches(c):
    window = Struct(WINDOW, rows=At("x", 3 * c.n), first=0, scale=3, flags=(1, 2, 9))
    args = (Pointers("x", At("x", c.n), None), "y", True, np.int8(-5), np.uint8(250), np.int16(-300), np.uint16(60000),
            np.float16(1.5), "pair", window, c.n)
    return [Launch("gather", (1,), (32,), 0, ARGS)]

operator = Operator(
    "gather", axes=[Axis("n", 64)],
    buffers=lambda c: (Buffer("x", "f32", "row=4 n", "in"), Buffer("y", "f32", "n", "out")),
    inputs=lambda c, r: {"x": r.normal(size=(4, c.n)), "pair": np.array((7, 0.25), PAIR)[()]},
    variants=[Variant("control", Source("gather.cu"), launches)],
    references=[Reference("fp64", lambda c, given: {"y": given["x"].astype(np.float64)[[0, 1, 3]].sum(axis=0)})],
    bounds=[RelL2("y", 1e-6)],
)
"""


def project(folder: Path, args: str = "args", kernel: str = KERNEL) -> Path:
    (folder / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    (folder / "kernels").mkdir()
    (folder / "kernels/gather.py").write_text(DECLARATION.replace("ARGS", args))
    (folder / "gather.cu").write_text(kernel)
    return folder


def test_every_kind_of_argument_on_the_cpu(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path), "run", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert audit(tmp_path, "verify", ran.json["evidence"]).code == 0


@pytest.mark.gpu
def test_every_kind_of_argument_on_a_gpu(tmp_path: Path, audit: Any) -> None:
    try:
        cuda.require_device()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    ran = audit(project(tmp_path), "run", "--device", "cuda", "--json")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("args[:-1]", "kernel gather: expected 11 arguments, but the launch has 10; correct `args` of the launch"),
        ("(*args[:2], 1, *args[3:])", "argument 3 of 1 bytes: expected an unsigned integer"),
        ("(*args[:2], np.int64(1), *args[3:])", "argument 3 of 1 bytes: expected an unsigned integer"),
        ("(*args[:8], args[9], *args[9:])", "argument 9: expected 8 bytes, but got 32"),
        ("(*args[:7], np.float32(1.5), *args[8:])", "argument 8 of 2 bytes: expected a struct, or a type of 16"),
        ("(*args[:9], args[8], *args[10:])", "argument 10: expected 32 bytes, but got 8"),
        ("(Pointers(At('x', 999)), *args[1:])", "x+3996 is past the 1024 bytes of its buffer"),
    ],
)
def test_what_does_not_fit_the_kernel_accuses_the_declaration(
    tmp_path: Path, audit: Any, args: str, words: str
) -> None:
    ran = audit(project(tmp_path, args), "run")
    assert ran.code == 3, ran.out + ran.err
    assert words in ran.out + ran.err
    assert "fail  " not in ran.out


def test_a_kernel_that_writes_past_a_table_is_found(tmp_path: Path, audit: Any) -> None:
    wrong = KERNEL.replace("bool right", "((float**)rows)[3] = y; bool right")
    ran = audit(project(tmp_path, kernel=wrong), "run", "--json")
    assert "guards" in ran.failed()


@pytest.mark.parametrize("tool", ["initcheck", "memcheck"])
def test_sanitizers_take_a_table(tmp_path: Path, audit: Any, tool: str) -> None:
    ran = audit(project(tmp_path), "sanitize", "--tool", tool)
    assert ran.code == 0, ran.out + ran.err
