"""A whole audit with `--device cuda`, on a driver whose device is the CPU: each execution, and its record."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from audit import plan as planning
from audit.backends import cuda
from audit.checks import Result
from audit.compile.cuda import compile_cubin
from audit.errors import ToolMissing
from audit.plan import Selection
from audit.project import find_project
from audit.records import run as run_record
from audit.records.run import RunRecord
from audit.run import run

HERE = Path(__file__).parent
PROJECT = """
import numpy as np

from audit.bounds import RelL2
from audit.spec import Axis, Buffer, Launch, Line, Operator, Reference, Source, Variant


def doubled(case, inputs):
    y = 2 * np.asarray(inputs["x"], np.float64)
    y[:7] += 1
    return {"y": y}


tried = Operator(
    "tried",
    axes=[Axis("n", 100)],
    same_on_host=True,
    buffers=lambda c: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
    inputs=lambda c, rng: {"x": rng.normal(0, 3, c.n).astype(np.float32)},
    steps=lambda c, x: {"live": {}, "turned": {"x": -x["x"]}, "restore": {}},
    variants=[
        Variant(
            "control",
            Source("kernels/kernels.cu"),
            lambda c: [
                Launch("scale", (1,), (128,), 64, ("x", "y", c.n, 2.0)),
                Launch("increment", (1,), (32,), 0, ("y", 7)),
            ],
        )
    ],
    references=[Reference("fp64", doubled)],
    bounds=[RelL2("y", 1e-6)],
    plan={"tried": [Line()]},
)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tried")
    (root / "kernels").mkdir()
    (root / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (root / "kernels/tried.py").write_text(PROJECT)
    shutil.copy(HERE / "kernels.cu", root / "kernels")
    try:
        compile_cubin(root, Path("kernels/kernels.cu"), ["scale"])
    except ToolMissing as missing:
        pytest.skip(str(missing))
    return root


@pytest.fixture
def on_device(
    project: Path, fake_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[RunRecord, Path]]]:
    """Audit the project on a driver with this fault. The driver is the children's alone: NVRTC wants none."""
    cuda.require_device.cache_clear()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))

    def audit(fault: str, root: Path = project) -> tuple[RunRecord, Path]:
        monkeypatch.setenv("FAKE_CUDA", fault)
        found = find_project(root)
        plan = planning.make_plan(found, "tried", Selection(), arch="sm_90", time_limit=60, backend="cuda")
        return run(found, plan, tmp_path / "runs", "test")

    yield audit
    cuda.require_device.cache_clear()


def results(evidence: RunRecord, *checks: str) -> list[Result]:
    (audited,) = evidence.audits
    return [result for result in audited.results if result.check in checks]


def failed(evidence: RunRecord) -> set[str]:
    return {result.check for audit in evidence.audits for result in audit.results if result.verdict == "fail"}


def test_every_execution_is_there_and_recorded(on_device: Callable[..., tuple[RunRecord, Path]]) -> None:
    evidence, folder = on_device("")
    assert evidence.summary.verdict == "pass"
    assert len(results(evidence, "graph")) == len(results(evidence, "host")) == 3
    assert len(results(evidence, "repeat")) == 2
    assert [result.detail for result in results(evidence, "completion")] == [
        "6 launches seen, 6 planned",
        "6 launches seen, 6 planned (graph)",
        "2 launches seen, 2 planned (again)",
        "6 launches seen, 6 planned (host)",
    ]
    (audited,) = evidence.audits
    assert audited.dynamic_shared == {"scale": 64, "increment": 0}
    assert audited.build
    device = evidence.builds[audited.build]
    (host,) = [build for key, build in evidence.builds.items() if key.startswith("control-host-")]
    assert (device.backend, host.backend, host.code) == ("cuda", "host", None)
    assert device.code
    assert [kernel.entry for kernel in device.code.kernels] == ["scale", "increment"]
    assert all(kernel.registers and kernel.spill_loads == 0 for kernel in device.code.kernels)
    assert ">Device code</h2>" in (folder / "report.html").read_text()
    assert run_record.KIND.load(folder) == evidence


def test_a_graph_that_is_stale_or_short_is_found_out(on_device: Callable[..., tuple[RunRecord, Path]]) -> None:
    stale, _ = on_device("stale")
    assert failed(stale) == {"graph"}
    short, _ = on_device("short")
    assert failed(short) == {"graph", "completion"}
    (found,) = [result for result in results(short, "completion") if result.verdict == "fail"]
    assert found.detail.startswith("3 launches seen, 6 planned (graph)")


@pytest.mark.parametrize(
    ("added", "note"),
    [
        ("", "100 elements equal the host"),
        ("\n#ifndef __CUDACC__\n#error no CPU\n#endif\n", "not compared with a CPU: "),
    ],
)
def test_without_a_promise_the_cpu_is_shown_and_not_judged(
    on_device: Callable[..., tuple[RunRecord, Path]], tmp_path: Path, project: Path, added: str, note: str
) -> None:
    stranger = Path(shutil.copytree(project, tmp_path / "stranger"))
    (stranger / "kernels/tried.py").write_text(PROJECT.replace("    same_on_host=True,\n", ""))
    with (stranger / "kernels/kernels.cu").open("a") as source:
        source.write(added)
    evidence, _ = on_device("", stranger)
    (audited,) = evidence.audits
    assert evidence.summary.verdict == "pass"
    assert results(evidence, "host") == []
    assert "host" not in evidence.plan.checks
    assert audited.notes[0].detail.startswith(note)
    assert len(audited.notes) == (1 if added else 3)


def test_a_promise_that_the_cpu_cannot_keep_is_inconclusive(
    on_device: Callable[..., tuple[RunRecord, Path]], tmp_path: Path, project: Path
) -> None:
    stranger = Path(shutil.copytree(project, tmp_path / "stranger"))
    with (stranger / "kernels/kernels.cu").open("a") as source:
        source.write("\n#ifndef __CUDACC__\n#error no CPU\n#endif\n")
    evidence, _ = on_device("", stranger)
    (result,) = results(evidence, "host")
    assert evidence.summary.verdict == result.verdict == "inconclusive"
    assert result.detail.startswith("not compared with the CPU, as promised: ")
