"""Cooperative launches, clusters, much shared memory, and compiled code: on a GPU, and refused by name on a CPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import cuda
from audit.compile import nvrtc, toolkit
from audit.compile.cuda import compile_cubin
from audit.errors import ToolMissing
from tests.conftest import ROOT, Ran

ENTRIES = ["sums", "add", "together", "clustered", "large"]
FOLDER = ROOT / "tests/projects/attributes"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "attributes"))


@pytest.mark.parametrize("tool", ["nvcc", "nvrtc"])
def test_a_compiler_for_a_gpu_takes_it(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if tool == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{tool} is not here")
    assert list(compile_cubin(FOLDER, Path("kernels/total.cu"), ENTRIES).symbols) == ENTRIES


@pytest.mark.gpu
def test_every_variant_passes_on_a_gpu(project: Path, audit: Callable[..., Ran]) -> None:
    try:
        arch = cuda.require_device().arch
        built = compile_cubin(project, Path("kernels/total.cu"), ["together"], arch=arch)
    except ToolMissing as missing:
        pytest.skip(str(missing))
    (project / "kernels/total.cubin").write_bytes(built.cubin)
    ran = audit(project, "run", "--shape", "total", "--device", "cuda", "--json")
    assert (ran.code, ran.json["passed"]) == (0, 5), ran.out


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("cooperative", "cooperative"),
        ("clustered", "cluster"),
        ("compiled", "kernels/total.cubin: this is compiled GPU code, which a CPU cannot run; use --device cuda"),
    ],
)
@pytest.mark.parametrize("command", ["run", "sanitize"])
def test_a_cpu_refuses_by_name(
    project: Path, audit: Callable[..., Ran], variant: str, reason: str, command: str
) -> None:
    """The result is inconclusive and accuses nobody."""
    if command == "sanitize" and variant != "compiled":
        pytest.skip("the same source does not build there, clusters and all")
    (project / "kernels/total.cubin").write_bytes(b"not read")
    if variant != "clustered":  # what a CPU cannot build would be the reason
        text = (project / "kernels/total.cu").read_text()
        start, end = text.index("// Each block keeps"), text.index("// The sums first go")
        text = text[:start] + text[end:]
        (project / "kernels/total.cu").write_text(text.replace("  cg::this_grid().sync();\n", ""))
    ran = audit(project, command, "--shape", "total", "--variant", variant, "--json")
    assert ran.code == 3, ran.out + ran.err
    assert reason in ran.out
    assert "not supported here" in ran.out
    assert '"verdict":"fail"' not in ran.out
