"""One small kernel for one construct of CUDA: on the CPU the result is right, or the construct is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.projects import commanded, verdicts, write_project

CONSTRUCTS: dict[str, dict[str, Any]] = {
    one["name"]: one for one in msgspec.json.decode((Path(__file__).parent / "constructs.json").read_bytes())
}
TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "u32": "uint32", "u8": "uint8"} | {
    "e4m3": "uint8",
    "i64": "int64",
    "u64": "uint64",
}
# What a GPU refuses, or CUDA leaves open, and a run therefore does not pass.
FOUND = {
    "q_assert_fails": "assertion `n < 0` failed",
    "q_launch_bounds_exceeded": "a GPU refuses it",
    "w_activemask": "repeat: ",  # it takes __activemask() for the mask of its branch
    "g_cg_coalesced": "repeat: ",
}
LEAST_THAT_PASS = 104
HELPERS = """import math

def sp(f, x): return np.array([f(v) for v in x], np.float64)
def sp2(f, x): return np.array([f(list(b)) for b in x.reshape(-1, 32)], np.float64).reshape(-1)
def erfinv(v):
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < v else (low, middle)
    return low
def signed(r): return r - (1 << 32) * (r >> 31)
def signed_byte(a, k): b = (int(a) >> (8 * k)) & 255; return b - 256 * (b > 127)
def vsubss4(a):
    return signed(sum((max(-128, min(127, signed_byte(a, k) - 1)) & 255) << (8 * k) for k in range(4)))
def bperm(a):
    b = [(int(a) >> (8 * k)) & 255 for k in range(4)] + [(0x11223344 >> (8 * k)) & 255 for k in range(4)]
    return signed(b[1] | b[3] << 8 | b[5] << 16 | b[7] << 24)
"""
DECLARATION = """
def reference(case, inputs):
    x = inputs["x"].astype(np.{storage}).astype(np.float64)
    return {{"y": np.asarray({reference}, np.float64).reshape(-1)}}
def measure(case, inputs, got, expected):
    g, e = got["y"].astype(np.float64), expected["y"]
    d = np.abs(g - e) / np.maximum(np.abs(e), 1)
    return Measured(np.where(g == e, 0, d), np.full(g.shape, {tolerance}), ("i",))

op = Operator("{name}", axes=[Axis("n", {n}), Axis("m", {m})],
    buffers=lambda c: [Buffer("x", "{takes}", "n", "in"), Buffer("y", "{gives}", "m", "out")],
    inputs=lambda c, rng: {{"x": np.asarray({inputs}).astype(np.{storage})}},
    references=[Reference("fp64", reference)], bounds=[Bound("abs", measure)],
    variants=[Variant("control", Source("kernels/{name}.cu"), status="control",
        launches=lambda c: [Launch("{entry}", ({grid},), ({block},), {shared}, {args})])])
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    folder = tmp_path_factory.mktemp("constructs") / "project"
    kernels = {
        name: (one["cuda"], HELPERS + DECLARATION.format(storage=TYPES[one["takes"]], **one))
        for name, one in CONSTRUCTS.items()
    }
    write_project(folder, kernels)
    commanded(folder, "run", "--shape", "all", "--time-limit", "20")
    return {name: verdicts(folder, name)["control"] for name in CONSTRUCTS}


@pytest.mark.full
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_it_passes_or_is_refused_by_name(name: str, found: dict[str, tuple[str, str]]) -> None:
    verdict, details = found[name]
    if name in FOUND:
        assert verdict == "fail"
        assert FOUND[name] in details
    elif verdict != "pass":
        assert verdict == "inconclusive"
        assert details.startswith("completion: not supported here: ")
        assert f"kernels/{name}.cu:" in details or "a kernel parameter must be" in details


@pytest.mark.full
def test_as_many_pass_as_before(found: dict[str, tuple[str, str]]) -> None:
    assert sum(verdict == "pass" for verdict, _ in found.values()) >= LEAST_THAT_PASS
