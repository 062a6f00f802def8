"""Shared memory that nobody wrote holds no zeros: a maximum over slots of warps that do not exist is found out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Ran

KERNEL = """
template <bool All> __device__ void largest(const float* x, float* y, int n) {
  __shared__ float part[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float most = -3.4e38f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, x[blockIdx.x * n + i]);
  for (int step = 16; step; step >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  if (lane == 0) part[warp] = most;
  __syncthreads();
  most = All || lane < blockDim.x / 32 ? part[lane] : -3.4e38f;
  for (int step = 16; step; step >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  if (threadIdx.x == 0) y[blockIdx.x] = most;
}
extern "C" __global__ void right(const float* x, float* y, int n) { largest<false>(x, y, n); }
extern "C" __global__ void unwritten(const float* x, float* y, int n) { largest<true>(x, y, n); }
"""
DECLARATION = """
import numpy as np
from audit import Axis, Buffer, Launch, Operator, Reference, Source, Variant
from audit.bounds import RelL2

largest = Operator(
    "largest", axes=[Axis("rows", 64), Axis("n", 200)],
    buffers=lambda c: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows", "out")],
    inputs=lambda c, rng: {"x": rng.normal(size=(c.rows, c.n))},
    references=[Reference("fp64", lambda c, i: {"y": i["x"].astype("f4").astype(float).max(1)})],
    bounds=[RelL2("y", 1e-6)],
    variants=[
        Variant(name, Source("kernels/largest.cu"), parent=parent,
                launches=lambda c, name=name: [Launch(name, (c.rows,), (128,), 0, ("x", "y", c.n))])
        for name, parent in (("right", None), ("unwritten", "right"))
    ],
)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (tmp_path / "kernels/largest.py").write_text(DECLARATION)
    (tmp_path / "kernels/largest.cu").write_text(KERNEL)
    return tmp_path


@pytest.mark.gpu
@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU")
def test_unwritten_shared_memory_is_found_on_a_gpu(project: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(project, "run", "--shape", "largest", "--device", "cuda", "--json")
    assert {result["variant"] for result in ran.results() if result["verdict"] == "fail"} == {"unwritten"}
    assert ran.failed() & {"repeat", "graph"}


def test_unwritten_shared_memory_is_found_on_the_cpu(project: Path, audit: Callable[..., Ran]) -> None:
    """There each block begins with signalling NaN, which a maximum passes over, and large values in the other arm."""
    ran = audit(project, "run", "--shape", "largest", "--json")
    assert {result["variant"] for result in ran.results() if result["verdict"] == "fail"} == {"unwritten"}
