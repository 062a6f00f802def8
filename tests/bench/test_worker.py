"""A whole bench, on a driver whose device is the CPU and whose clock says 1 ms for everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.backends import cuda
from audit.cli.bench import command
from audit.compile.cuda import compile_cubin
from audit.errors import PlanError, ToolMissing
from audit.records import bench as store
from audit.records import folder
from audit.records.bench import BenchRecord

KERNELS = Path(__file__).parents[1] / "backends/kernels.cu"
PROJECT = """
import numpy as np

from audit.errors import ToolMissing
from audit.spec import Axis, Bench, Buffer, Launch, Operator, Peer, Reference, Source, Variant


def variant(name, increments, parent=None, status="admitted"):
    def launches(case):
        scale = Launch("scale", (case.context,), (32,), 0, ("x", "y", case.context, 2.0))
        return [scale, *[Launch("increment", (1,), (32,), 0, ("y", n)) for n in increments]]

    return Variant(name, Source("kernels/kernels.cu", {"NAME": name}), launches, parent, status)


class Numpy:
    def __init__(self, case, layers):
        self.layers = layers

    def replay(self):
        pass

    def out(self, layer):
        return fp64(None, self.layers[layer])["y"].astype(np.float32)


def absent(case, layers):
    raise ToolMissing("it is not installed")


def broken(case, layers):
    raise RuntimeError("it has its own terms")


def fp64(case, inputs):
    y = 2 * np.asarray(inputs["x"], np.float64)
    y[:7] += 1
    return {"y": y}


tried = Operator(
    "tried",
    axes=[Axis("context", 40)],
    buffers=lambda c: [Buffer("x", "f32", "context", "in"), Buffer("y", "f32", "context", "out")],
    inputs=lambda c, rng: {"x": rng.normal(0, 3, c.context).astype(np.float32)},
    variants=[
        variant("control", [7], status="control"),
        variant("split", [7], parent="control"),
        variant("wrong", [7, 3], parent="control"),
        variant("shut", [7], parent="control", status="closed"),
    ],
    references=[Reference("fp64", fp64)],
    default="split",
    bench=Bench(
        "context",
        (10, 40),
        {},
        lambda case, inputs, n: {"x": np.where(np.arange(40) < n, inputs["x"], 0).astype(np.float32)},
        lambda case, n: 8 * n,
        output="y",
        layers=3,
        peers=[
            Peer("plain", "numpy", Numpy, lambda case: 8 * case.context),
            Peer("absent", "nowhere", absent, lambda case: 1),
            Peer("broken", "nowhere", broken, lambda case: 1),
        ],
    ),
)
"""


@pytest.fixture
def project(tmp_path: Path, fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (tmp_path / "kernels/tried.py").write_text(PROJECT)
    shutil.copy(KERNELS, tmp_path / "kernels")
    try:
        compile_cubin(tmp_path, Path("kernels/kernels.cu"), ["scale"])
    except ToolMissing as missing:
        pytest.skip(str(missing))
    cuda.require_device.cache_clear()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver))  # for the children: NVRTC wants none
    yield tmp_path
    cuda.require_device.cache_clear()


@pytest.fixture
def bench(project: Path) -> Callable[..., tuple[int, BenchRecord]]:
    def call(*words: str) -> tuple[int, BenchRecord]:
        done = CliRunner().invoke(command, ["--shape", "tried", "--project", str(project), *words])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, store.KIND.load(folder.latest(project / "runs", store.KIND.file))

    return call


def test_variants_are_checked_then_timed_in_pairs(bench: Callable[..., tuple[int, BenchRecord]]) -> None:
    code, evidence = bench("--variant", "split")
    assert code == 0
    assert [point.value for point in evidence.points] == [10, 40]
    for point in evidence.points:
        assert [(pair.a, pair.b, pair.b_is_peer) for pair in point.pairs] == [
            ("control", "split", False),
            ("split", "plain", True),
        ]
        assert all(times == (1 / 8,) * 5 for pair in point.pairs for times in (pair.a_ms, pair.b_ms, pair.again_ms))
        assert point.moved == 3 * 8 * point.value
    # y of three layers by plain launches and by the graph; the control's graph beside its plain launches
    found = {(one.variant, one.parent, one.value): (one.nbytes, one.differing) for one in evidence.checked}
    assert found == {
        (name, "control", context): (nbytes, 0)
        for name, nbytes in (("control", 480), ("split", 960))
        for context in (10, 40)
    }
    assert {(error.name, error.value) for error in evidence.errors} == {
        (name, context) for name in ("control", "split", "plain") for context in (10, 40)
    }
    assert all(error.relative_l2 <= 1e-7 for error in evidence.errors)
    assert {(skipped.name, skipped.why) for skipped in evidence.skipped} == {
        ("absent", "it is not installed"),
        ("broken", "at context=10: RuntimeError: it has its own terms"),
        ("broken", "at context=40: RuntimeError: it has its own terms"),
    }
    assert evidence.peers["plain"].startswith("numpy ")
    assert evidence.bandwidth.copy > 0
    assert set(evidence.builds) == {"control", "split"}


def test_a_variant_whose_bytes_differ_is_not_timed(bench: Callable[..., tuple[int, BenchRecord]]) -> None:
    code, evidence = bench("--no-peers")
    assert code == 3
    assert {pair.b for point in evidence.points for pair in point.pairs} == {"split"}
    wrong = [one for one in evidence.checked if one.variant == "wrong"]
    assert all(one.differing > 0 for one in wrong)
    (why,) = {skipped.why for skipped in evidence.skipped if skipped.name == "wrong" and "at context=40" in skipped.why}
    assert why.endswith("bytes differ from those of control")


def test_a_closed_variant_is_timed_when_it_is_named(bench: Callable[..., tuple[int, BenchRecord]]) -> None:
    _, evidence = bench("--no-peers", "--context", "40")
    assert "shut" not in evidence.builds
    code, evidence = bench("--no-peers", "--context", "40", "--variant", "shut")
    assert code == 0
    assert [(pair.a, pair.b) for point in evidence.points for pair in point.pairs] == [("control", "shut")]


def test_a_graph_that_does_nothing_is_found_out(
    bench: Callable[..., tuple[int, BenchRecord]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA", "stale")
    code, evidence = bench("--no-peers", "--variant", "split")
    assert code == 3
    assert {one.variant: one.differing for one in evidence.checked if one.value == 40} == {
        "control": 480,
        "split": 480,
    }
    assert all(not point.pairs for point in evidence.points)


def test_refusals(project: Path) -> None:
    def refused(*words: str) -> str:
        done = CliRunner().invoke(command, ["--shape", "tried", "--project", str(project), *words])
        assert isinstance(done.exception, PlanError)
        return str(done.exception)

    assert "--axis: expected NAME=VALUE" in refused("--axis", "context")
    assert not list((project / "runs").glob("*/bench.json"))
    assert "--axis context: expected integers to time at, but got 1.5" in refused("--axis", "context=1.5")
    assert "expected an axis of ['context'], but got 'n'" in refused("--axis", "n=1")


IN_PLACE = """
import numpy as np

from audit.spec import Axis, Buffer, Launch, Operator, Source, Variant


def variant(name, increments, parent=None):
    return Variant(
        name, Source("kernels/kernels.cu", {"NAME": name}), parent=parent,
        launches=lambda case: [Launch("increment", (1,), (32,), 0, ("y", n)) for n in increments],
    )


tried = Operator(
    "tried",
    axes=[Axis("n", 40), Axis("m", 2)],
    buffers=lambda c: [Buffer("y", "f32", "m n", "inout"), Buffer("unused", "f32", "n", "scratch")],
    inputs=lambda c, rng: {"y": rng.normal(0, 3, (c.m, c.n))},
    variants=[variant("control", [7]), variant("same", [7], "control"), variant("twice", [7, 3], "control")],
)
"""


def test_an_operator_without_a_bench_is_timed_along_any_axis_and_in_place(
    bench: Callable[..., tuple[int, BenchRecord]], project: Path
) -> None:
    (project / "kernels/tried.py").write_text(IN_PLACE)
    code, evidence = bench()
    assert code == 3  # `twice` differs
    assert (evidence.axis, [point.value for point in evidence.points]) == ("n", [40])
    assert evidence.points[0].moved == 16 * 2 * (2 * 40 * 4)
    code, evidence = bench("--variant", "same", "--axis", "m=1", "--axis", "m=3", "--axis", "n=16")
    assert code == 0
    assert (evidence.axis, evidence.working_sets, evidence.axes) == ("m", (1, 3), {"n": 16, "m": 3})
    assert [(point.value, point.moved) for point in evidence.points] == [(1, 16 * 2 * 64), (3, 16 * 2 * 192)]
    assert evidence.method.replays == 1
    # each replay starts from the contents of before, so the graph leaves what the plain launches left
    assert {(one.variant, one.value): one.differing for one in evidence.checked} == {
        (name, value): 0 for name in ("control", "same") for value in (1, 3)
    }
    assert not evidence.errors  # nothing says what is right


def test_without_a_device_nothing_is_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA", "none")
    done = CliRunner().invoke(command, ["--shape", "tried", "--project", str(project)])
    assert isinstance(done.exception, ToolMissing)
    assert not (project / "runs").exists()
