"""What a `Source` declares is what every compiler gets: folders, standard, further files, contraction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.compile import nvrtc, toolkit
from audit.compile.cuda import compile_cubin
from audit.compile.source_words import has_fast_math, host_contraction, host_standard, is_contracted, nvcc_words
from audit.spec import Source

DECLARATION = """
import numpy as np
from audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant

operator = Operator(
    "scaled", axes=[Axis("n", 64)],
    buffers=lambda c: (Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")),
    inputs=lambda c, r: {"x": r.normal(size=c.n).astype(np.float32)},
    variants=[Variant("control", SOURCE, lambda c: [Launch("scaled", (1,), (32,), 0, ("x", "y", c.n))])],
    references=[Reference("fp64", lambda c, given: {"y": 3 * given["x"].astype(np.float64)})],
    bounds=[RelL2("y", 1e-6)],
)
"""
FILES = {
    "src/scaled.cu": """
#include <lib/factor.cuh>
#include "more.cuh"
extern "C" __global__ void scaled(const float* x, float* y, int n) {
  static_assert(__cplusplus >= 202002L, "C++20");
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tripled(x[i]) + more::nothing;
}
""",
    "src/tripled.cu": "#include <lib/factor.cuh>\n__device__ float tripled(float x) { return factor() * x; }\n",
    "include/lib/factor.cuh": """#pragma once
__device__ inline float factor() { return 3; }
__device__ float tripled(float);
""",
    "other/more.cuh": "namespace more { constexpr float nothing = 0; }\n",
}
SOURCE = 'Source("src/scaled.cu", include=("include", "other"), std="c++20", also=("src/tripled.cu",))'


def project(folder: Path, source: str = SOURCE, files: dict[str, str] = FILES) -> Path:
    (folder / "pyproject.toml").write_text("[tool.kernel-audit]\n")
    for name, text in {"kernels/scaled.py": DECLARATION.replace("SOURCE", source), **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def build(ran: Any) -> dict[str, Any]:
    evidence = json.loads((Path(ran.json["evidence"]) / "evidence.json").read_text())
    (found,) = evidence["builds"].values()
    return dict(found)


def test_folders_standard_and_further_sources_on_the_cpu(tmp_path: Path, audit: Any) -> None:
    ran = audit(project(tmp_path), "run", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert sorted(build(ran)["sources"]) == sorted(FILES)
    assert audit(tmp_path, "verify", ran.json["evidence"]).code == 0
    header = tmp_path / "include/lib/factor.cuh"
    header.write_text(header.read_text().replace("return 3", "return 4"))
    assert audit(tmp_path, "run").code == 1  # the cache knows the header


def test_the_same_words_in_flags(tmp_path: Path, audit: Any) -> None:
    source = SOURCE.replace(
        'include=("include", "other"), std="c++20"', 'flags=("-Iinclude", "-I", "other", "-std=c++20")'
    )
    ran = audit(project(tmp_path, source), "run")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("tool", ["nvcc", "nvrtc"])
def test_a_compiler_for_a_gpu_takes_them(tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if tool == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{tool} is not here")
    words = nvcc_words(Source("src/scaled.cu", include=("include", "other"), std="c++20"))
    root = project(tmp_path)
    built = compile_cubin(root, Path("src/scaled.cu"), ["scaled"], flags=words, also=("src/tripled.cu",))
    assert sorted(built.identity.sources) == sorted(FILES)
    assert built.identity.contracted is True


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SOURCE.replace('"other"', '"../other"'), "include: expected paths in the project"),
        (SOURCE.replace('"c++20"', '"20"'), "std: expected a C++ standard such as c++20, but got '20'"),
        (SOURCE.replace("tripled.cu", "none.cu"), "source src/none.cu: no such file"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, audit: Any, source: str, words: str) -> None:
    ran = audit(project(tmp_path, source), "run")
    assert ran.code == 2, ran.out + ran.err
    assert words in ran.err


CONTRACTING = """
extern "C" __global__ void scaled(const float* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float squared = x[i] * x[i];
    float fused = fmaf(x[i], x[i], -squared), written = x[i] * x[i] - squared;
    float apart = __fsub_rn(__fmul_rn(x[i], x[i]), squared);
    y[i] = EXPRESSION ? 3 * x[i] : 0;
  }
}
"""


@pytest.mark.parametrize(
    ("flags", "contracted", "expression"),
    [
        ("()", True, "true"), ('("-fmad=false",)', False, "written == 0"), ('("--use_fast_math",)', True, "true"),
        ("()", True, "apart == 0"), ('("--fmad=false", "--use_fast_math")', False, "written == 0"),
    ],
)  # fmt: skip
def test_the_cpu_follows_the_declared_contraction(
    tmp_path: Path, audit: Any, flags: str, contracted: bool, expression: str
) -> None:
    text = CONTRACTING.replace("EXPRESSION", expression)
    ran = audit(project(tmp_path, f'Source("k.cu", flags={flags})', {"k.cu": text}), "run", "--json")
    assert ran.code == 0, ran.out + ran.err
    made = build(ran)
    assert made["contracted"] is contracted
    assert made["fast_math"] is ("fast_math" in flags)
    assert ("-ffp-contract=fast" in made["flags"]) is contracted


def test_a_product_and_a_sum_are_fused_on_the_cpu_as_nvcc_may(tmp_path: Path, audit: Any) -> None:
    """The difference of a product and its rounded value is the rounding error where it is fused, and 0 where not."""
    text = CONTRACTING.replace(
        "float squared = x[i] * x[i]", "float again = ((const volatile float*)x)[i], squared = again * again"
    )
    text = text.replace("__fsub_rn(__fmul_rn(x[i], x[i]), squared)", "0").replace("EXPRESSION", "written == fused")
    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    assert audit(project(tmp_path / "on", 'Source("k.cu")', {"k.cu": text}), "run").code == 0
    assert audit(project(tmp_path / "off", 'Source("k.cu", flags=("-fmad=false",))', {"k.cu": text}), "run").code == 1


@pytest.mark.parametrize(
    ("words", "contracted"),
    [
        ((), True), (("-fmad=true",), True), (("--fmad=false",), False), (("-fmad", "false"), False),
        (("-fmad=false", "-fmad=true"), True), (("--use_fast_math", "-fmad=false"), False),
    ],
)  # fmt: skip
def test_words_about_contraction(words: tuple[str, ...], contracted: bool) -> None:
    assert is_contracted(words) is contracted
    assert bool(host_contraction(words)) is contracted


def test_words_about_the_standard() -> None:
    assert host_standard(("-std=c++20",)) == host_standard(("--std", "c++20")) == ("-std=c++20",)
    assert host_standard(("-std=c++14",)) == host_standard(("-std=c++03",)) == host_standard(()) == ()
    assert has_fast_math(("-use_fast_math",))
    assert not has_fast_math(("-O3",))
