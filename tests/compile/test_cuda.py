"""The same sources as cubins: by NVRTC and by nvcc, where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.compile import nvrtc, toolkit
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
        if not nvrtc.is_installed():
            pytest.skip("NVRTC is not installed")
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    elif toolkit.find_nvcc() is None:
        pytest.skip("there is no nvcc")
    return str(request.param)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_compile_unchanged(tool: str, name: str) -> None:
    if tool == "nvcc" and name not in ("shared", "tensor"):
        pytest.skip("two files are enough")
    built = compile_cubin(SIMT_TESTS, SIMT_TESTS / f"{name}.cu", SOURCES[name], flags=["-fmad=false"])
    assert built.cubin.startswith(b"\x7fELF")
    assert list(built.symbols) == SOURCES[name]
    for symbol in built.symbols.values():
        assert symbol.encode() in built.cubin
    assert built.identity.backend == "cuda"
    assert "-fmad=false" in built.identity.flags
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
def test_spills_and_shared_memory_are_reported(tmp_path: Path) -> None:
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
    monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    monkeypatch.setattr(nvrtc, "is_installed", lambda: False)
    with pytest.raises(ToolMissing, match="pip install cuda-bindings"):
        compile_cubin(SIMT_TESTS, SIMT_TESTS / "launches.cu", ["nothing"])
    monkeypatch.setenv("KERNEL_AUDIT_NVCC", "/nowhere/nvcc")
    with pytest.raises(ToolMissing, match="KERNEL_AUDIT_NVCC=/nowhere/nvcc: no such program"):
        compile_cubin(SIMT_TESTS, SIMT_TESTS / "launches.cu", ["nothing"])


def test_a_virtual_architecture_is_refused() -> None:
    with pytest.raises(PlanError, match="compute_90"):
        compile_cubin(SIMT_TESTS, SIMT_TESTS / "launches.cu", ["nothing"], arch="compute_90")


HEADERS = """
#include <stdio.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <limits>
#include <cuda.h>
#include <cuda_runtime.h>
#include <assert.h>
constexpr float most = std::numeric_limits<float>::max();
constexpr float infinite = -INFINITY;
__global__ void k(float* p, uint32_t u) {
  assert(p);
  p[0] = FLT_MAX + INT_MAX + M_PI + NAN + most + infinite + u + fmaxf(p[1], HUGE_VALF);
  if (u == 77) printf("%f", p[0]);
}
"""


@pytest.mark.usefixtures("tool")
def test_c_headers_are_there(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HEADERS)
    built = compile_cubin(tmp_path, Path("k.cu"), ["k"])
    assert built.symbols == {"k": "_Z1kPfj"}
    assert built.identity.sources.keys() == {"k.cu"}


WHOLE = """#include <cstdio>
#include <string>
#include <vector>
#include <cublas_v2.h>
#include "include_me.h"
#define cudaCheck(x) do { cudaError_t e = (x); if (e) { printf("%s", cudaGetErrorString(e)); } } while (0)
static cublasHandle_t handle;
struct Shape { int rows; __host__ __device__ int twice() const { return 2 * rows; } };
template <int N> __global__ void k(float* p) { p[threadIdx.x] = N * p[threadIdx.x] + Shape{FACTOR}.twice(); }
template <int N> void launch(float* p) { k<N><<<1, 32>>>(p); cudaCheck(cudaGetLastError()); }
int main(int argc, char** argv) {
  std::vector<std::string> names(argv, argv + argc);
  float* p;
  cudaCheck(cudaMalloc(&p, 128));
  cublasCreate(&handle);
  launch<3>(p);
  return 0;
}
"""


@pytest.mark.usefixtures("tool")
def test_a_whole_file_needs_no_guard(tmp_path: Path) -> None:
    """Host code is there, and headers of host libraries are not."""
    (tmp_path / "k.cu").write_text(WHOLE)
    (tmp_path / "include_me.h").write_text("#pragma once\n#define FACTOR 5\n")
    built = compile_cubin(tmp_path, Path("k.cu"), ["k<6>"])
    assert built.symbols == {"k<6>": "_Z1kILi6EEvPf"}
    assert built.identity.sources.keys() == {"k.cu", "include_me.h"}
    assert "cublas_v2.h" in built.identity.stubs
    assert not built.identity.host_code
    (tmp_path / "k.cu").write_text(WHOLE.replace("2 * rows", "2 * row"))
    with pytest.raises(CompileError, match=r'^k\.cu\(8\): error: identifier "row" is undefined') as raised:
        compile_cubin(tmp_path, Path("k.cu"), ["k<6>"])
    assert str(raised.value).count("is undefined") == 1
    assert "\0" not in str(raised.value)


@pytest.mark.usefixtures("tool")
def test_a_missing_header_of_the_project_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/k.cu").write_text(
        '\n#include "tools/sum.cuh"\n__global__ void k(float* p) { p[0] = sum(p); }\n'
    )
    with pytest.raises(CompileError, match=r'^kernels/k\.cu:2: include "tools/sum\.cuh": no such file beside'):
        compile_cubin(tmp_path, Path("kernels/k.cu"), ["k"])
    (tmp_path / "include/tools").mkdir(parents=True)
    (tmp_path / "include/tools/sum.cuh").write_text("__device__ float sum(float* p) { return p[0] + p[1]; }\n")
    built = compile_cubin(tmp_path, Path("kernels/k.cu"), ["k"], flags=["-Iinclude"])
    assert built.identity.sources.keys() == {"kernels/k.cu", "include/tools/sum.cuh"}
    assert "-Iinclude" in built.identity.flags


@pytest.mark.usefixtures("tool")
def test_flags_change_the_code_and_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { p[0] = p[1] * p[2] + p[3]; }\n")
    plain = compile_cubin(tmp_path, Path("k.cu"), ["k"])
    apart = compile_cubin(tmp_path, Path("k.cu"), ["k"], flags=["-fmad=false"])
    assert plain.cubin != apart.cubin
    assert plain.identity.key != apart.identity.key
    assert "-fmad=false" in apart.identity.flags
    newer = compile_cubin(tmp_path, Path("k.cu"), ["k"], flags=["-std=c++20", "-arch=sm_90a", "-Xcompiler", "-Wall"])
    assert newer.identity.arch == "sm_90a"
    assert "-std=c++17" not in newer.identity.flags


def test_an_instruction_that_the_gpu_lacks_is_named(tool: str, tmp_path: Path) -> None:
    """NVRTC's headers do not say that the function is deprecated, so that only nvcc can name its line."""
    (tmp_path / "k.cu").write_text("\n__global__ void k(float* p) { p[0] = __ballot(p[1] > 0); }\n")
    with pytest.raises(CompileError, match=r"ptxas PTX of k\.cu, line \d+; error .*'vote' without '\.sync'") as raised:
        compile_cubin(tmp_path, Path("k.cu"), ["k"])
    assert tool == "nvrtc" or 'k.cu(2): warning #1444-D: function "__ballot" was decl' in str(raised.value)


@pytest.mark.usefixtures("tool")
def test_an_entry_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { p[0] = 1; }\n")
    with pytest.raises(CompileError, match=r'^k\.cu: entry absent: error: identifier "absent" is undefined') as raised:
        compile_cubin(tmp_path, Path("k.cu"), ["k", "absent"])
    assert "name_map" not in str(raised.value)


def test_an_architecture_that_nvcc_lacks_is_no_fault_of_the_source(tmp_path: Path) -> None:
    if toolkit.find_nvcc() is None:
        pytest.skip("there is no nvcc")
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { p[0] = 1; }\n")
    with pytest.raises(ToolMissing, match=r"cannot compile for sm_30 here: .*set CUDA_HOME"):
        compile_cubin(tmp_path, Path("k.cu"), ["k"], arch="sm_30")


@pytest.mark.parametrize(
    "message",
    [
        "crt/host_config.h:137:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not",
        "nvcc fatal   : Failed to preprocess host compiler properties.",
    ],
)
def test_a_host_compiler_that_nvcc_refuses_is_no_fault_of_the_source(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 1\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("KERNEL_AUDIT_NVCC", str(nvcc))
    (tmp_path / "k.cu").write_text("__global__ void k(float* p) { p[0] = 1; }\n")
    with pytest.raises(ToolMissing, match=r"cannot compile for sm_90 here: .*NVCC_CCBIN"):
        compile_cubin(tmp_path, Path("k.cu"), ["k"])
