"""CUDA sources through clang and PTX: right, and the bytes of the other front end."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from audit import bundle
from audit.backends import host
from audit.backends.outcome import Completed
from audit.compile.clang import find_clang
from audit.compile.host import FRONT_END, HostBuild, build_host
from audit.compile.program import SourceUnit
from audit.compile.ptx_build import build_by_clang
from audit.compile.source_words import nvcc_words
from audit.errors import CompileError, PlanError
from audit.project import find_project
from audit.spec import Source
from tests.simt.programs import launch

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(find_clang() is None, reason="needs clang from release 19 on, and CUDA's headers")


def _built(folder: Path, text: str, *entries: str, **unit: object) -> HostBuild:
    (folder / "k.cu").write_text(text)
    return build_by_clang(folder, SourceUnit(Path("k.cu"), **unit), entries)  # type: ignore[arg-type]


def test_a_softmax_has_the_bytes_of_the_other_front_end(tmp_path: Path) -> None:
    project = ROOT / "tests/projects/softmax"
    source, entries = project / "kernels/control.cu", ["softmax_control"]
    x = np.random.default_rng(1).normal(0, 3, (5, 333)).astype(np.float32)
    through = {
        "gcc": build_host(project, source, entries),
        "clang": build_by_clang(project, SourceUnit(source), entries),
    }
    got = {}
    for name, program in through.items():
        folder = tmp_path / name
        folder.mkdir()
        ended = launch(program, folder, "softmax_control", 5, 128, x, np.zeros_like(x), "i32:333")
        assert ended.code == 0, ended.errors
        got[name] = ended.buffers["b1"]
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    # x - max is rounded to f32: at most 2^-24 of 20, before exp; sum, exp and division add a few 2^-24 more.
    np.testing.assert_allclose(got["clang"], exponentials / exponentials.sum(axis=1, keepdims=True), rtol=26 * 2**-24)
    assert np.array_equal(got["clang"], got["gcc"])
    assert through["clang"].identity.compiler.startswith("clang: ")
    assert "headers" in through["clang"].identity.compiler


def test_inline_ptx_and_a_template_and_every_kind_of_parameter(tmp_path: Path) -> None:
    program = _built(
        tmp_path,
        """
struct Scale { float by; long plus; };
__constant__ int shift;
template <int N>
__global__ void k(const int* x, int* y, Scale s, unsigned char b, float f, double d, short h) {
  int i = threadIdx.x, v;
  asm volatile("{ .reg .b32 t; add.s32 t, %1, %2; mov.b32 %0, t; }" : "=r"(v) : "r"(x[i]), "n"(N));
  y[i] = v + (int)(s.by + s.plus + b + f + d + h) + shift;
}""",
        "k<7>",
        constants=("shift",),
    )
    x = np.arange(32, dtype=np.int32)
    struct = np.array([(2.0, 30)], np.dtype([("by", "f4"), ("plus", "i8")], align=True)).tobytes().hex()
    ended = launch(
        program, tmp_path, "k<7>", 1, 32, x, np.zeros_like(x), f"bytes:{struct}", "u32:200",
        f"f32:{np.float32(1000).view(np.uint32):08x}", f"f64:{np.float64(5000).view(np.uint64):016x}", "i32:-3",
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    assert ended.buffers["b1"].tolist() == [i + 7 + 2 + 30 + 200 + 1000 + 5000 - 3 for i in range(32)]


def test_an_atomic_whose_result_nobody_reads_stays(tmp_path: Path) -> None:
    program = _built(
        tmp_path,
        "__global__ void k(float* y) { atomicAdd((float4*)y, make_float4(1, 2, 3, 4)); }",
        "k",
    )
    ended = launch(program, tmp_path, "k", 1, 64, np.zeros(4, np.float32))
    assert ended.buffers["b0"].tolist() == [64, 128, 192, 256]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "__global__ void k(int* y) { y[0] = 1 / (y[1] - y[1]); }",
            "unsupported .*k.cu:1: an integer division by zero",
        ),
        (
            "#include <assert.h>\n__global__ void k(int* y) { assert(y[0] > 5); }",
            "assert .*k.cu:2: assertion `y",
        ),
        ("__global__ void k(int* y) { *(long long*)(y + 1) = 3; }", "memory .*k.cu:1"),
        ("__global__ void __launch_bounds__(16) k(int* y) { y[0] = 1; }", "launch .*at most 16 threads"),
        (
            "__global__ void k(int* y) { if (threadIdx.x) { __syncthreads(); *y = 1; } else {\n__syncthreads(); } }",
            "barrier .*k.cu:1",
        ),
    ],
)
def test_a_fault_is_found_at_its_line(text: str, error: str, tmp_path: Path) -> None:
    ended = launch(_built(tmp_path, text, "k"), tmp_path, "k", 1, 32, np.zeros(8, np.int32))
    assert ended.code == 3
    assert re.search(f"error {error}", ended.error), ended.error


def test_clang_reads_what_gcc_cannot_where_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '__global__ void k(unsigned* y) { asm("mov.u32 %0, %%laneid;" : "=r"(y[threadIdx.x])); }'
    (tmp_path / "k.cu").write_text(text)
    with pytest.raises(CompileError):
        build_host(tmp_path, tmp_path / "k.cu", ["k"])
    monkeypatch.delenv(FRONT_END)
    ended = launch(build_host(tmp_path, tmp_path / "k.cu", ["k"]), tmp_path, "k", 1, 32, np.zeros(32, np.uint32))
    assert ended.buffers["b0"].tolist() == list(range(32))
    monkeypatch.setenv(FRONT_END, "nvcc")
    with pytest.raises(PlanError, match="expected gcc or clang"):
        build_host(tmp_path, tmp_path / "k.cu", ["k"])


def test_an_instruction_that_the_cpu_lacks_is_named_at_its_line(tmp_path: Path) -> None:
    text = '__global__ void k(int* y) {\n  asm volatile("wgmma.fence.sync.aligned;");\n}'
    with pytest.raises(CompileError, match=r"k.cu:2: not supported on the CPU: the PTX instruction `wgmma.fence"):
        _built(tmp_path, text, "k")


@pytest.mark.parametrize(
    ("operator", "name"),
    [("grouped", "control"), ("grouped", "piped_roles"), ("scalar", "control"), *(
        pytest.param(operator.name, variant.name, marks=pytest.mark.full)
        for operator in find_project(ROOT).operators.values()
        for variant in operator.variants
        if variant.name not in ("control", "piped_roles")
    )],
)  # fmt: skip
def test_a_variant_of_this_repository_has_the_same_bytes(operator: str, name: str, tmp_path: Path) -> None:
    project = find_project(ROOT)
    owner = project.operators[operator]
    variant = owner.variant(name)
    assert isinstance(variant.code, Source)
    shape = next(one for one in owner.shapes if one.name in ("q6", "q1"))
    case = owner.case(shape, {"heads": 3, "dim": 64, "context": 129, "page": 1648}, seed=1)
    inputs = owner.inputs(case, case.rng())
    got = {}
    for front_end in ("gcc", "clang"):
        folder = tmp_path / front_end
        folder.mkdir()
        manifest = bundle.write_bundle(folder, owner, variant, case, inputs, {"live": {}})
        unit = SourceUnit(ROOT / variant.code.path, variant.code.defines, nvcc_words(variant.code), variant.code.also)
        if front_end == "clang":
            program = build_by_clang(ROOT, unit, manifest.entries)
        else:
            program = build_host(
                ROOT, unit.path, manifest.entries, defines=unit.defines, words=unit.words, also=unit.also
            )
        outcome = host.run(folder, manifest, program, 120, 2)
        assert isinstance(outcome, Completed), outcome
        got[front_end] = {file: path.read_bytes() for file, path in outcome.files["live"].items()}
    assert got["clang"] == got["gcc"]
