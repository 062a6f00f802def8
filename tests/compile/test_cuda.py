"""The same sources as cubins: by NVRTC and by nvcc, where they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from audit.compile import cuda
from audit.compile.cuda import compile_cubin
from audit.errors import CompileError, PlanError, ToolMissing

SIMT_TESTS = Path(__file__).parents[1] / "simt"
SOURCES = {
    "barriers": ["reverse", "votes", "order"],
    "warps": ["shuffles", "types", "votes"],
    "shared": ["templated<32, int>", "templated<64, float>", "functions", "dynamic"],
    "atomics": ["sums", "extremes"],
    "tensor": ["product<16, 16, Row, Col>", "product<32, 8, Col, Row>", "instruction"],
    "arithmetic": ["to_half", "halves", "to_fp8", "from_fp8", "integers"],
    "launches": ["kinds", "small_kinds", "whole_grid"],
}


@pytest.fixture(params=["nvrtc", "nvcc"])
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "nvrtc":
        if cuda._cuda_core() is None:
            pytest.skip("cuda.core is not installed")
        monkeypatch.setenv("PATH", "")
    else:
        if shutil.which("nvcc") is None:
            pytest.skip("nvcc is not on PATH")
        monkeypatch.setattr(cuda, "_cuda_core", lambda: None)
    return str(request.param)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_compile_unchanged(tool: str, name: str) -> None:
    if tool == "nvcc" and name not in ("shared", "tensor"):
        pytest.skip("nvcc takes seconds a file; two are enough")
    built = compile_cubin(SIMT_TESTS, SIMT_TESTS / f"{name}.cu", SOURCES[name])
    assert built.cubin.startswith(b"\x7fELF")
    assert list(built.symbols) == SOURCES[name]
    for symbol in built.symbols.values():
        assert symbol.encode() in built.cubin
    assert built.identity.backend == "cuda"
    assert "--fmad=false" in built.identity.flags
    assert built.identity.sources.keys() == {f"{name}.cu"}
    assert built.identity.code is not None
    assert [(record.entry, record.symbol) for record in built.identity.code.kernels] == list(built.symbols.items())
    for record in built.identity.code.kernels:
        assert record.registers is not None
        assert 4 <= record.registers <= 255
        assert None not in (record.static_shared, record.stack, record.spill_stores, record.spill_loads)


SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) k(float* p) {
  __shared__ float tile[100];
  float x[40];
  for (int i = 0; i < 40; ++i) x[i] = p[i * 1024 + threadIdx.x];
  tile[threadIdx.x % 100] = x[3];
  __syncthreads();
  for (int round = 0; round < 9; ++round)
    for (int i = 0; i < 40; ++i) x[i] = x[i] * x[(i * 7 + 3) % 40] + tile[i];
  for (int i = 0; i < 40; ++i) p[i * 1024 + threadIdx.x] = x[i];
}
"""


@pytest.mark.usefixtures("tool")
def test_spills_and_shared_memory_are_told(tmp_path: Path) -> None:
    """32 registers are all that 2,048 threads leave for 40 values."""
    (tmp_path / "k.cu").write_text(SPILLING)
    code = compile_cubin(tmp_path, Path("k.cu"), ["k"]).identity.code
    assert code is not None
    (record,) = code.kernels
    assert (record.registers, record.static_shared) == (32, 400)
    assert record.stack is not None
    assert record.spill_stores is not None
    assert record.spill_loads is not None
    assert record.stack > 0
    assert record.spill_stores > 0
    assert record.spill_loads > 0


@pytest.mark.usefixtures("tool")
def test_errors_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/k.cu").write_text("\n__global__ void k(int* p) { p[0] = nothing; }\n")
    with pytest.raises(CompileError, match=r"^kernels/k\.cu\(2\): error: identifier \"nothing\" is undefined"):
        compile_cubin(tmp_path, Path("kernels/k.cu"), ["k"])
    (tmp_path / "kernels/k.cu").write_text("__global__ void k(int* p) { p[0] = VALUE; }\n")
    with pytest.raises(CompileError, match="absent"):
        compile_cubin(tmp_path, Path("kernels/k.cu"), ["absent"], defines={"VALUE": "1"})
    assert compile_cubin(tmp_path, Path("kernels/k.cu"), ["k"], defines={"VALUE": "1"}).symbols == {"k": "_Z1kPi"}


def test_no_tool_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_cuda_core", lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match="pip install cuda-core"):
        compile_cubin(SIMT_TESTS, SIMT_TESTS / "launches.cu", ["nothing"])


def test_a_virtual_architecture_is_refused() -> None:
    with pytest.raises(PlanError, match="compute_90"):
        compile_cubin(SIMT_TESTS, SIMT_TESTS / "launches.cu", ["nothing"], arch="compute_90")
