"""`audit gate` as CI calls it: it runs what can run here, and its exit code is the verdict."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from junitparser import JUnitXml

from audit.gate.policy import EVERYDAY, load_policy
from audit.project import Project, find_project

from ..conftest import Ran
from ..gate import made

Audit = Callable[..., Ran]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.project(tmp_path_factory.mktemp("gate")).root


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))


def test_it_runs_what_can_run_here_and_passes(project: Project, audit: Audit) -> None:
    ran = audit(project.root, "gate", "--also", "junit=gate.xml", "--also", "json=gate.json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.splitlines()[-1].startswith("pass: of ")
    assert "pass: 4 of 4 passed" in ran.err
    assert sum(path.is_dir() for path in (project.root / "runs").iterdir()) == 2
    (page,) = (project.root / "runs").glob("gate-*-everyday.html")
    assert ran.err.splitlines()[-1] == f"page of the gate: {page}"
    shown = page.read_text()
    assert "Pass — gate, policy everyday" in shown
    linked = re.findall(r'href="([^#"]+)"', shown)
    assert {(page.parent / target).is_file() for target in linked} == {True}
    assert any(target.endswith("/report.html") and not target.startswith("..") for target in linked)
    (suite,) = JUnitXml.fromfile(str(project.root / "gate.xml"))
    verdict = json.loads((project.root / "gate.json").read_bytes())
    assert suite.tests == len(verdict["conditions"])
    assert verdict["verdict"] == "pass"
    # What was run is evidence like any other: it stands for another run.
    again = audit(project.root, "gate", "--evidence", "runs", "--format", "json", "--policy", "release")
    assert (again.code, again.json["policy"], again.err) == (0, "release", "")
    assert sum(path.is_dir() for path in (project.root / "runs").iterdir()) == 2
    assert list((project.root / "runs").glob("gate-*.html")) == [page]  # nothing was run, so there is no new page
    # The same verdict, for GitHub: a summary of its own, annotations on stdout.
    source = project.root / "kernels/fast.cu"
    source.write_text(source.read_text() + "\n")
    steps = project.root / "steps.md"
    told = audit(project.root, "gate", "--evidence", "runs", "--format", "github", GITHUB_STEP_SUMMARY=str(steps))
    assert told.code == 3
    assert "fast.cu has changed" in steps.read_text().replace("\\", "")
    assert told.out.startswith("::error title=sources softmax on host::inconclusive")


def test_without_running_it_is_inconclusive(project: Project, audit: Audit) -> None:
    ran = audit(project.root, "gate", "--no-run")
    assert ran.code == 3
    assert "inconclusive audits softmax on host: 0 passed, 4 missing" in ran.out
    assert "`audit gate` runs what is missing" in ran.out
    assert "pass         " not in ran.out
    assert "pass         audits softmax on cuda" in audit(project.root, "gate", "--no-run", "--verbose").out
    assert not (project.root / "runs").exists()


def test_a_finding_exits_1_with_sarif(project: Project, audit: Audit) -> None:
    settings = project.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace('variants = ["control", "fast"]', 'variants = ["wrong"]', 1))
    ran = audit(project.root, "gate", "--format", "sarif", "--output", "gate.sarif")
    assert (ran.code, ran.out) == (1, "")
    assert "fail: of " in ran.err
    (run,) = json.loads((project.root / "gate.sarif").read_bytes())["runs"]
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
        if result["ruleId"] == "check/bytes"
    }
    assert uris == {"kernels/wrong.cu"}


def test_a_page_on_stdout_and_in_a_file(project: Project, audit: Audit) -> None:
    ran = audit(project.root, "gate", "--no-run", "--format", "html", "--also", "html=below.html")
    assert ran.code == 3
    assert ran.out.startswith("<!doctype html>")
    assert "Inconclusive — gate, policy everyday" in ran.out
    assert "<code>audit report reports/" in ran.out  # where stdout goes is not known, so nothing is linked
    assert re.search(r'href="reports/[^"]+/report.html"', (project.root / "below.html").read_text())


def test_help_shows_the_least_policy(softmax_project: Path, audit: Audit) -> None:
    refused = audit(softmax_project, "gate")
    assert refused.code == 2
    assert "`audit gate --help` shows the least that it needs" in refused.err
    told = audit(softmax_project, "gate", "--help").out
    example = told[told.index("[[tool.kernel-audit.gate") :]
    settings = softmax_project / "pyproject.toml"
    settings.write_text(f"{settings.read_text()}\n{example}")
    (rule,) = load_policy(find_project(softmax_project), EVERYDAY).audits
    assert (rule.shapes, rule.device) == (("softmax",), "host")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "nightly"), "--policy: expected one of everyday, release, but got 'nightly'"),
        (("--evidence", "nowhere"), "expected a folder of evidence"),
        (("--also", "junit"), "expected FORMAT=FILE"),
        (("--also", "pdf=x"), "expected one of text, html, json"),
        (("--no-run", "--output", "/proc/none/x"), "cannot be written there"),
    ],
)
def test_usage_exits_2(project: Project, audit: Audit, words: tuple[str, ...], said: str) -> None:
    ran = audit(project.root, "gate", *words)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
