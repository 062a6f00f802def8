"""A search finds what the plan does not, makes it small, and says how to run it again."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import search as searching
from audit.errors import PlanError, ToolMissing
from audit.plan import Plan, Selection, make_plan
from audit.project import Project, find_project
from audit.search import SearchOutcome, plan_of, search, seconds_of

from .conftest import Ran

CUDA = """extern "C" __global__ void greatest(const float* x, float* y, int n) {
  float m = WRONG ? 0.f : -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, x[blockIdx.x * n + i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x == 0) y[blockIdx.x] = m;
}
"""
DECLARATION = """import numpy as np
from audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant

greatest = Operator(
    "greatest",
    axes=[Axis("rows", 4, at_least=1, at_most=64), Axis("n", 100, at_least=1, at_most=1000)],
    buffers=lambda case: [Buffer("x", "f32", "rows n", "in"), Buffer("y", "f32", "rows", "out")],
    inputs=lambda case, rng: {"x": rng.normal(size=(case.rows, case.n)).astype(np.float32)},
    references=[Reference("fp64", lambda case, inputs: {"y": inputs["x"].astype(float).max(-1)})],
    bounds=[RelL2("y", 1e-6)],
    variants=[
        Variant(
            "control",
            Source("kernels/greatest.cu"),
            launches=lambda case: [Launch("greatest", (case.rows,), (32,), 0, ("x", "y", case.n))],
        )
    ],
)
"""


def project(folder: Path, wrong: str) -> tuple[Project, Plan]:
    """The greatest of each row; where `wrong` holds, it begins at 0, which only negative rows show."""
    (folder / "kernels").mkdir()
    (folder / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (folder / "kernels/greatest.cu").write_text(CUDA.replace("WRONG", wrong))
    (folder / "kernels/greatest.py").write_text(DECLARATION)
    found = find_project(folder)
    return found, make_plan(found, "greatest", Selection(), arch="sm_90", time_limit=60)


def searched(folder: Path, wrong: str, seconds: float = 60, seed: int = 0) -> SearchOutcome:
    return search(*project(folder, wrong), seconds, seed)


def test_the_smallest_size_that_fails_is_found(tmp_path: Path) -> None:
    outcome = searched(tmp_path, "n > 100 && n % 3 == 0")
    assert outcome.command("greatest") == (
        "audit run --shape greatest --axis rows=1 --axis n=102 --seed 1 --family negative"
    )
    assert outcome.case is not None
    assert outcome.case.families == ("negative",)


def test_the_same_seed_draws_the_same_cases(tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        found.append(searched(tmp_path / name, "n > 200", seed=3))
    assert found[0].found == found[1].found
    assert (found[0].tried, found[0].extent) == (found[1].tried, found[1].extent)


def test_a_search_without_a_finding_says_what_it_covered_and_ends_in_time(tmp_path: Path) -> None:
    outcome = searched(tmp_path, "false", seconds=2)
    assert outcome.found is None
    assert outcome.tried > 5
    assert outcome.seconds < 5
    assert "values of n from 1 to " in outcome.extent
    assert "9 input families in each" in outcome.extent


def test_the_command_leaves_a_record_of_what_it_found_and_exits_1(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    project(tmp_path, "n > 700")
    ran = audit(tmp_path, "run", "--search", "30s", "--json")
    assert ran.code == 1, ran.out + ran.err
    assert (ran.json["verdict"], ran.json["search"]["found"]["verdict"]) == ("pass", "fail")
    evidence = ran.json["search"]["found"]["evidence"]
    assert audit(tmp_path, "verify", evidence).code == 0
    record = json.loads((Path(evidence) / "evidence.json").read_text())
    (case,) = record["plan"]["cases"]
    assert (case["axes"], case["families"]) == ({"rows": 1, "n": 701}, ["negative"])
    again = audit(tmp_path, *shlex.split(ran.json["search"]["reproduce"])[1:])
    assert again.code == 1
    assert "rows=1,n=701, input family negative" in again.out


def test_a_plan_with_findings_is_not_searched(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    project(tmp_path, "true")
    ran = audit(tmp_path, "run", "--search", "60s")
    assert ran.code == 1
    assert "search: not begun, because the plan has findings" in ran.out


def test_an_interruption_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, plan = project(tmp_path, "n > 300")

    def interrupt(_self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(searching._Search, "shrink", interrupt)
    outcome = search(found, plan, 60)
    assert outcome.interrupted
    assert outcome.case is not None
    assert plan_of(plan, outcome.case).cases == (outcome.case,)


def test_a_search_without_hypothesis_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ToolMissing, match=r"pip install 'kernel-audit\[search\]'"):
        searched(tmp_path, "false")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("60s", 60), ("1.5m", 90), ("1h", 3600)])
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "soon", "-3s", "0", "nan", "inf", "9999h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(PlanError, match="--search: expected a time such as 60s"):
        seconds_of(text)


def test_one_buffer_of_several_can_be_the_one_that_matters(tmp_path: Path) -> None:
    """A product that is wrong where the first factor alone is negative: what `negative` makes of both hides it."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-audit]\nkernels = "kernels"\n')
    (tmp_path / "kernels/product.cu").write_text(
        'extern "C" __global__ void product(const float* a, const float* b, float* y, int n) {\n'
        "  float s = 0, least = 0, most = -9; for (int i = 0; i < n; ++i) { s += a[i] * b[i];\n"
        "    least = fminf(least, a[i]); most = fmaxf(most, a[i]); }\n"
        "  y[0] = most < 0 && least < 3 * most && b[0] > 0 ? 0 : s; }\n"
    )
    (tmp_path / "kernels/product.py").write_text(
        "import numpy as np\nfrom audit import Axis, Buffer, Launch, Operator, Reference, RelL2, Source, Variant\n"
        'product = Operator("product", axes=[Axis("n", 8, at_least=8, at_most=8)],\n'
        '    buffers=lambda c: [Buffer("a", "f32", "n", "in"), Buffer("b", "f32", "n", "in"),\n'
        '                       Buffer("y", "f32", "one=1", "out")],\n'
        '    inputs=lambda c, r: {name: r.normal(size=c.n).astype(np.float32) for name in "ab"},\n'
        '    references=[Reference("fp64", lambda c, i: {"y": np.array([i["a"].astype(float) @ i["b"]])})],\n'
        '    bounds=[RelL2("y", 1e-4)], variants=[Variant("control", Source("kernels/product.cu"),\n'
        '        launches=lambda c: [Launch("product", (1,), (1,), 0, ("a", "b", "y", c.n))])])\n'
    )
    found = find_project(tmp_path)
    plan = make_plan(found, "product", Selection(), arch="sm_90", time_limit=60)
    outcome = search(found, plan, 60)
    assert outcome.found is not None
    assert outcome.found.family == "negative:a"
