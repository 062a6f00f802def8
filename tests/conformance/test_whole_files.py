"""Files with all their host code, unguarded: by nvcc, by NVRTC, on a CPU, and on a GPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import cuda
from audit.compile import nvrtc, toolkit
from audit.compile.device import build_device
from audit.declaration import launches_of
from audit.errors import ToolMissing
from audit.project import project_in
from audit.spec import Shape
from tests.conftest import Ran

FOLDER = Path(__file__).with_name("whole_files")
OPERATORS = sorted(path.stem for path in (FOLDER / "kernels").glob("*.cu"))
EVERYDAY = ("matmul_forward", "attention_softmax")
EACH = [pytest.param(name, marks=[] if name in EVERYDAY else [pytest.mark.full]) for name in OPERATORS]


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("tool", ["nvcc", "nvrtc"])
def test_a_compiler_for_a_gpu_takes_it(name: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "nvrtc":
        monkeypatch.setenv("KERNEL_AUDIT_NVCC", "none")
    if not (nvrtc.is_installed() if tool == "nvrtc" else toolkit.find_nvcc()):
        pytest.skip(f"{tool} is not here")
    operator = project_in(FOLDER).operators[name]
    case = operator.case(Shape(name), {})
    digests = set()
    for variant in operator.variants:
        entries = tuple(launch.entry for launch in launches_of(variant, case))
        built = build_device(FOLDER, variant, entries, "sm_90")
        assert tuple(built.symbols) == entries
        digests |= set(built.identity.machine_code.values())
    assert len(digests) >= 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "project"))


@pytest.mark.parametrize("name", EACH)
def test_it_passes_on_a_cpu(name: str, project: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(project, "run", "--shape", name, "--json")
    assert (ran.code, ran.json["passed"]) == (0, 2), ran.out


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPERATORS)
def test_it_passes_on_a_gpu(name: str, project: Path, audit: Callable[..., Ran]) -> None:
    try:
        cuda.require_device()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    ran = audit(project, "run", "--shape", name, "--device", "cuda", "--json")
    assert (ran.code, ran.json["passed"]) == (0, 2), ran.out
