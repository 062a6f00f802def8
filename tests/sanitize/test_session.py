"""A session: what it plans, what it takes for proof, and how it exits."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.cli.sanitize import command
from audit.errors import PlanError
from audit.project import find_project
from audit.records import folder
from audit.records import sanitize as store
from audit.records.sanitize import SanitizeRecord
from audit.report.sanitize_page import render_sanitize
from audit.sanitize import plan
from audit.sanitize.canaries import planted
from audit.sanitize.host import tools as host

from ..conftest import ROOT

Sanitize = Callable[..., tuple[int, SanitizeRecord]]


@pytest.fixture
def sanitize(softmax_project: Path) -> Sanitize:
    """`audit sanitize --shape softmax` in a project of its own: exit code and evidence."""

    def call(*words: str) -> tuple[int, SanitizeRecord]:
        done = CliRunner().invoke(command, ["--shape", "softmax", "--project", str(softmax_project), *words])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        found = store.KIND.load(folder.latest(softmax_project / "runs", store.KIND.file))
        assert f"{found.summary.canaries_found} of {found.summary.canaries} canaries found" in done.stdout
        return done.exit_code, found

    return call


def test_a_clean_session(sanitize: Sanitize) -> None:
    code, evidence = sanitize("--tool", "synccheck")
    assert code == 0
    assert evidence.summary.verdict == "pass"
    assert evidence.summary.planned == evidence.summary.clean == len(evidence.checked) == 3
    assert all(one.launches == one.planned_launches > 0 for one in evidence.checked)
    assert {canary.name for canary in evidence.canaries} == {"divergent_barrier", "divergent_warp"}
    (tool,) = evidence.tools
    assert tool.gaps
    assert tool.gaps in render_sanitize(evidence)


def test_a_tool_that_is_not_there_leaves_everything_open(sanitize: Sanitize, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(host.shutil, "which", lambda name: None if name == "valgrind" else which(name))
    code, evidence = sanitize("--tool", "initcheck")
    assert code == 3
    assert {one.verdict for one in evidence.checked} == {"inconclusive"}
    assert all("valgrind" in one.reason and one.launches == 0 for one in evidence.checked)
    assert evidence.summary.ran == evidence.summary.canaries == 0
    assert "valgrind" in render_sanitize(evidence)


def test_without_its_canary_silence_proves_nothing(
    sanitize: Sanitize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tame = Path(shutil.copytree(planted.FOLDER, tmp_path / "canaries"))
    text = (tame / "barriers.cu").read_text()
    (tame / "barriers.cu").write_text(text.replace("if (threadIdx.x < 32) {", "if (true) {", 1))
    monkeypatch.setattr(planted, "FOLDER", tame)
    code, evidence = sanitize("--tool", "synccheck")
    missed = [canary for canary in evidence.canaries if not canary.found]
    assert [canary.name for canary in missed] == ["divergent_barrier"]
    assert code == 3
    assert all("did not find the canary divergent_barrier" in one.reason for one in evidence.checked)


RULE = """
[[tool.kernel-audit.suppressions]]
name = "known"
tool = "synccheck"
kind = "divergent-barrier"
where = "softmax_fast"
reason = "a test"
expires = "{expires}"
"""


@pytest.mark.parametrize(
    ("expires", "why"), [("2020-01-01", "expired on 2020-01-01"), ("2999-01-01", "matched nothing")]
)
def test_a_suppression_that_is_no_longer_true_fails(
    sanitize: Sanitize, softmax_project: Path, monkeypatch: pytest.MonkeyPatch, expires: str, why: str
) -> None:
    monkeypatch.setattr(plan, "TOOLS", ("synccheck",))  # its session is then not narrowed
    settings = softmax_project / "pyproject.toml"
    settings.write_text(settings.read_text() + RULE.format(expires=expires))
    code, evidence = sanitize()
    assert not evidence.plan.pruned
    assert code == 1, evidence.summary
    assert any(re.search(f"suppression 'known' {why}", reason) for reason in evidence.summary.reasons)
    assert why in render_sanitize(evidence)


def test_the_plan_of_this_project() -> None:
    project = find_project(ROOT)
    made = plan.make_sanitize_plan(project, "q6", time_limit=60)
    captured = [case for case in made.cases if case.capture]
    assert len(made.cases) == 3
    assert [case.context for case in captured] == [97]
    assert "n64" not in made.variants
    assert {"control", "visible_tile"} <= set(made.variants)
    narrowed = plan.make_sanitize_plan(project, "q6", variants=["visible_tile"], cases=["layer18"], time_limit=60)
    assert narrowed.pruned
    assert narrowed.variants == ("ordered_qk_pv", "visible_tile")
    assert narrowed.cases == tuple(captured)
    with pytest.raises(PlanError, match="--case: expected a part of one of"):
        plan.make_sanitize_plan(project, "q6", cases=["nowhere"], time_limit=60)


def test_axes_and_seeds_choose_cases_as_those_of_a_run_do() -> None:
    project = find_project(ROOT)

    def chosen(axes: dict[str, list[int]], seeds: list[int]) -> list[tuple[int, int, str | None]]:
        made = plan.make_sanitize_plan(project, "q6", axes=axes, seeds=seeds, time_limit=60)
        assert made.pruned
        return [(case.context, case.seed, case.capture) for case in made.cases]

    declared = next(case.context for case in plan.make_sanitize_plan(project, "q6", time_limit=60).cases)
    assert (declared, 1, None) in chosen({"context": [declared]}, [])
    assert chosen({"context": [33, 40]}, [5]) == [(33, 5, None), (40, 5, None)]
    assert {(seed, capture) for _, seed, capture in chosen({}, [2, 3])} == {(2, None), (3, None)}
    with pytest.raises(PlanError, match="axis context: expected an integer of at least 1"):
        chosen({"context": [-1]}, [])
