"""Inputs become what their buffers hold once, before anything sees them; what only the author can mean is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from audit.conversions import converted, share
from audit.errors import ProjectError
from audit.spec import Buffer, Case

CASE = Case("s", "op", {"n": 4})


def given(dtype: str, array: Any) -> tuple[Any, str]:
    return converted(Buffer("x", dtype, "n", "in"), CASE, np.asanyarray(array))


@pytest.mark.parametrize(
    ("dtype", "array", "note"),
    [
        ("f32", np.array([0.1, 0.5, 1e-50, np.nan]), "f64 to f32, 50% of the elements rounded"),
        ("f32", np.zeros(4), "f64 to f32, no element rounded"),
        ("f32", np.zeros(4, np.float16), "f16 to f32, no element rounded"),
        ("bf16", np.array([1.001, 1, 1, 1], np.float32), "f32 to bf16, 25% of the elements rounded"),
        ("e2m1", np.array([0.5, 0.6, 6.5, -1]), "f64 to e2m1, 50% of the elements rounded"),
        ("f16", np.array([1, 2, 3, 4], ml_dtypes.bfloat16), "bf16 to f16, no element rounded"),
        ("f32", np.zeros(4, np.float32), ""),
        ("bf16", np.zeros(4, np.uint16), ""),
        ("u4", np.array([0, 15, 3, 4], np.uint8), ""),
    ],
)
def test_a_conversion_is_noted(dtype: str, array: Any, note: str) -> None:
    assert given(dtype, array)[1] == note


def test_an_array_that_fits_is_the_same_object() -> None:
    for dtype, array in (("e4m3", np.zeros(4, np.uint8)), ("f32", np.zeros(4, np.float32))):
        assert given(dtype, array)[0] is array


@pytest.mark.parametrize(
    ("dtype", "array", "words"),
    [
        ("f32", np.array([0, 0, 1e39, 0]), "numbers that f32 has, to 3.40282e+38, but got 1e+39 at [n=2]; clip them"),
        ("e4m3", np.array([500.0, 0, 0, 0]), "numbers that e4m3 has, to 448, but got 500 at [n=0]"),
        ("e2m1", np.array([np.nan, 0, 0, 0]), "numbers that e2m1 has, to 6, but got nan"),
        ("f32", np.arange(4), "expected dtype float32, but got int64; write `.astype(np.float32)`"),
        ("bf16", np.arange(4), "write `.astype(ml_dtypes.bfloat16)`"),
        ("i32", np.zeros(4), "expected dtype int32, but got float64; write `.astype(np.int32)`"),
        ("i4", np.zeros(4, np.int8), "write `.astype(ml_dtypes.int4)`"),
        ("bool", np.zeros(4, np.uint8), "write `.astype(np.bool_)`"),
        ("u4", np.array([0, 16, 3, 4], np.uint8), "one an element and at most 15, but got 16"),
        ("e4m3", np.zeros(4, np.int8), "expected dtype float8_e4m3fn, but got int8"),
        ("f32", np.zeros(3), "expected shape (4,), but got (3,)"),
    ],
)
def test_what_only_the_author_can_mean_is_refused(dtype: str, array: Any, words: str) -> None:
    with pytest.raises(ProjectError) as raised:
        given(dtype, array)
    assert words in str(raised.value)


def test_a_share_is_never_rounded_to_nothing() -> None:
    assert share(1, 10**6) == "less than 1% of the elements rounded"
    assert share(10**6 - 1, 10**6) == "99% of the elements rounded"
    assert share(10**6, 10**6) == "100% of the elements rounded"


DECLARATION = """
import numpy as np
from ml_dtypes import int4
from audit import Axis, Bound, Buffer, Launch, Measured, Operator, Reference, RelL2, Source, Variant

def compute(c, given):
    return {"y": DOUBLE * given["x"].astype(np.float64)}

def exactly(c, given, got, expected):
    error = np.abs(got["y"].astype(np.float64) - DOUBLE * given["x"].astype(np.float64))
    return Measured(error, np.zeros(error.shape), ("n",))

operator = Operator(
    "twice", axes=[Axis("n", 64)],
    buffers=lambda c: (Buffer("x", "DTYPE", "n", "in"), Buffer("y", "OUT", "n", "out")),
    inputs=lambda c, r: {"x": INPUT},
    steps=lambda c, given: {"live": {}, "other": {"x": OTHER}, "restore": {}},
    variants=[Variant("control", Source("twice.cu"), lambda c: [Launch("twice", (1,), (32,), 0, ("x", "y", c.n))])],
    references=[Reference("fp64", compute)], bounds=[Bound("exact", exactly)], measured={"y": "y"},
)
"""
KERNELS = {
    "bf16": """
extern "C" __global__ void twice(const unsigned short* x, unsigned short* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float value = 2 * __uint_as_float((unsigned)x[i] << 16);
    y[i] = (unsigned short)(__float_as_uint(value) >> 16);
  }
}
""",
    "f32": """
extern "C" __global__ void twice(const float* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[i];
}
""",
    # two elements a byte: 0.5 times 2 is the code 1 -> 2; only 0 and 0.5 are given
    "e2m1": """
extern "C" __global__ void twice(const unsigned char* x, unsigned char* y, int n) {
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x) y[i] = (unsigned char)(x[i] << 1);
}
""",
    "i4": """
extern "C" __global__ void twice(const unsigned char* x, signed char* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int code = i % 2 ? x[i / 2] >> 4 : x[i / 2] & 15;
    y[i] = (signed char)(2 * (code < 8 ? code : code - 16));
  }
}
""",
    "bool": """
extern "C" __global__ void twice(const bool* x, bool* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}
""",
}


def project(folder: Path, dtype: str, given: str, other: str, out: str = "", double: int = 2, kernel: str = "") -> Path:
    (folder / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    text = DECLARATION.replace("DTYPE", dtype).replace("OUT", out or dtype).replace("INPUT", given)
    (folder / "kernels").mkdir()
    (folder / "kernels/twice.py").write_text(text.replace("OTHER", other).replace("DOUBLE", str(double)))
    (folder / "twice.cu").write_text(kernel or KERNELS[dtype])
    return folder


@pytest.mark.parametrize(
    ("dtype", "given", "other", "out", "double", "note"),
    [
        ("f32", "r.normal(size=c.n)", "np.ones(c.n)", "", 2, "f64 to f32, 100% of the elements rounded"),
        ("bf16", "r.normal(size=c.n)", "np.ones(c.n)", "", 2, "f64 to bf16, 100% of the elements rounded"),
        ("e2m1", "r.integers(0, 2, c.n) / 2", "np.full(c.n, 0.5)", "", 2, "f64 to e2m1, no element rounded"),
        ("i4", "r.integers(-8, 8, c.n).astype(int4)", "(np.arange(c.n) % 16 - 8).astype(int4)", "i8", 2, ""),
        ("bool", "r.integers(0, 2, c.n) > 0", "np.arange(c.n) > 9", "", 1, ""),
    ],
)
def test_a_project_of_every_kind_of_dtype(
    tmp_path: Path, audit: Any, dtype: str, given: str, other: str, out: str, double: int, note: str
) -> None:
    ran = audit(project(tmp_path, dtype, given, other, out, double), "run", "--json")
    assert ran.code == 0, ran.out + ran.err
    (case,) = json.loads((Path(ran.json["evidence"]) / "evidence.json").read_text())["cases"]
    assert case["converted"] == ({"x": note} if note else {})
    again = audit(tmp_path, "run")
    said = "converted    x: " in again.out
    assert said == (dtype in ("f32", "bf16"))


def test_hooks_see_what_the_kernel_sees(tmp_path: Path, audit: Any) -> None:
    """The bound of `project` permits no error against 2 * x as the hook sees x: a kernel of f32 on f64 would fail."""
    ran = audit(project(tmp_path, "f32", "r.normal(size=c.n)", "np.ones(c.n)"), "run", "--json")
    assert {one["verdict"] for one in ran.results() if one["check"] == "error:exact"} == {"pass"}


def test_a_bool_that_is_neither_0_nor_1_is_a_finding(tmp_path: Path, audit: Any) -> None:
    wrong = KERNELS["bool"].replace("bool* y", "unsigned char* y").replace("= x[i]", "= x[i] ? 2 : 0")
    ran = audit(
        project(tmp_path, "bool", "r.integers(0, 2, c.n) > 0", "np.arange(c.n) > 9", "", 1, wrong), "run", "--json"
    )
    assert ran.code == 1
    found = [one for one in ran.results() if one["check"] == "finite" and one["verdict"] == "fail"]
    assert "elements of bool are neither 0 nor 1, the first y[n=" in found[0]["detail"]


def test_a_wrong_half_of_a_byte_is_named(tmp_path: Path, audit: Any) -> None:
    wrong = KERNELS["e2m1"].replace("y[i] =", "y[i] = i == 3 ? (unsigned char)(x[i] << 1 ^ 0x40) :")
    given = "r.integers(0, 2, c.n) / 2"
    ran = audit(project(tmp_path, "e2m1", given, "np.full(c.n, 0.5)", "", 2, wrong), "run", "--json")
    assert ran.code == 1
    found = [one for one in ran.results() if one["check"] == "error:exact" and one["verdict"] == "fail"]
    assert {one["where"] for one in found} == {"n=7"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "np.arange(c.n)",
            "operator twice, case twice/seed1/n=64: inputs returned for input x: expected dtype float32",
        ),
        ("np.full(c.n, 1e300)", "but got 1e+300 at [n=0]; clip them or write `.astype(np.float32)`"),
        ("np.zeros(3)", "input x: expected shape (64,), but got (3,)"),
    ],
)
def test_a_refusal_says_where(tmp_path: Path, audit: Any, given: str, words: str) -> None:
    ran = audit(project(tmp_path, "f32", given, "np.ones(c.n)"), "run")
    assert ran.code == 2
    assert words in ran.err


def test_a_step_is_converted_like_the_inputs(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path, "f32", "np.ones(c.n)", "np.arange(c.n)"), "run")
    assert ran.code == 2
    assert "steps['other'] returned for input x: expected dtype float32, but got int64" in ran.err
