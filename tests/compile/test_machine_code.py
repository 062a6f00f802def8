"""Digests of machine code: equal for equal code under any name, different where the code differs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.compile import nvrtc, toolkit
from audit.compile.cuda import compile_cubin
from audit.compile.elf import read_elf
from audit.compile.host import build_host
from audit.compile.machine_code import cubin_digests

KERNEL = """__global__ void NAME(const float* x, float* y, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x] * table[threadIdx.x % 4];
  __syncthreads();
  float most = HELPER(tile[63 - threadIdx.x]);
  switch (n) {
    case 0: most += 1.25; break;
    case 1: most *= 3; break;
    case 2: most = expf(most); break;
    case 3: most -= FACTOR * 0.1234567890123; break;
    case 4: most = 7; break;
  }
  y[threadIdx.x] = most;
}
"""
HELPER = "static __device__ __noinline__ float HELPER(float x) { return x * 3 + (x > 1 ? 0.7f : -0.3f); }\n"
TABLE = "__constant__ float table[4] = {1, 2, 3, 4};\n"

Digests = Callable[[Path, str, list[str], dict[str, str]], dict[str, str]]


def kernel(name: str, helper: str = "helped") -> str:
    return HELPER.replace("HELPER", helper) + KERNEL.replace("NAME", name).replace("HELPER", helper)


@pytest.fixture(params=["host", "nvcc", "nvrtc"])
def digests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Digests:
    """entry -> digest of a source, by each way to build it."""
    if request.param == "host":
        return lambda root, source, entries, defines: dict(
            build_host(root, Path(source), entries, defines=defines).identity.machine_code
        )
    if request.param == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if request.param == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{request.param} is not here")
    return lambda root, source, entries, defines: dict(
        compile_cubin(root, Path(source), entries, defines=defines).identity.machine_code
    )


def test_names_do_not_count(digests: Digests, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two kernels and their helpers in one file; the same kernel in another file under another name.

    A program for the CPU holds lines and columns of its source, for messages: there only the same ones give equal code.
    """
    (tmp_path / "old.cu").write_text(TABLE + kernel("one", "first") + kernel("other", "later"))
    (tmp_path / "new.cu").write_text(TABLE + kernel("renamed", "named") + kernel("second_one", "aside"))
    defines = {"FACTOR": "2"}
    both = digests(tmp_path, "old.cu", ["one", "other"], defines)
    assert both["one"] == both["other"] or "host" in request.node.name
    assert digests(tmp_path, "new.cu", ["renamed", "second_one"], defines)["renamed"] == both["one"]


def test_code_counts(digests: Digests, tmp_path: Path) -> None:
    """A macro, a constant in the code, a helper, a constant in memory."""
    text = TABLE + kernel("one")
    (tmp_path / "k.cu").write_text(text)
    found = {digests(tmp_path, "k.cu", ["one"], {"FACTOR": factor})["one"] for factor in ("2", "3")}
    for old, new in (("1.25", "1.5"), ("-0.3f", "-0.4f"), ("{1, 2, 3, 4}", "{1, 2, 3, 5}"), ("tile[64]", "tile[65]")):
        assert old in text
        (tmp_path / "k.cu").write_text(text.replace(old, new))
        found |= {digests(tmp_path, "k.cu", ["one"], {"FACTOR": "2"})["one"]}
    assert len(found) == 6


def test_templates_differ(digests: Digests, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("template <int N> __global__ void k(float* p) { p[threadIdx.x] *= N; }\n")
    found = digests(tmp_path, "k.cu", ["k<2>", "k<3>"], {})
    assert found["k<2>"] != found["k<3>"]
    assert digests(tmp_path, "k.cu", ["k<3>"], {}) == {"k<3>": found["k<3>"]}


def test_no_elf_file() -> None:
    with pytest.raises(ValueError, match="expected a 64-bit little-endian ELF file"):
        cubin_digests(b"//\n.version 8.0", {})
    with pytest.raises(ValueError, match="expected a whole ELF file"):
        read_elf(b"\x7fELF\x02\x01" + bytes(40) + b"\xff" * 100)
    with pytest.raises(ValueError, match="expected a cubin, but got an ELF file for machine 62"):
        cubin_digests(Path(sys.executable).resolve().read_bytes(), {})
