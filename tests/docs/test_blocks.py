"""Every block of every page works as printed: projects load and are audited, commands print what the page shows."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.gate import baseline, policy
from audit.project import Project, find_project
from audit.sanitize import suppressions

from ..conftest import ROOT, Ran
from .pages import PAGES, README, Block, blocks, files, lay_out, projects, transcripts

CODE = ("toml", "python", "py", "cuda", "cpp", "cu")
BLOCKS = [each for page in PAGES for each in blocks(page)]


def runs_long(page: Path, project: str) -> bool:
    """Whether a transcript runs every sanitizer."""
    return any("sanitize" in command and "--tool" not in command for command, _ in transcripts(page, project))


PROJECTS = [
    pytest.param(
        page, project, id=f"{page.stem}-{project}", marks=[pytest.mark.slow] if runs_long(page, project) else []
    )
    for page, project in projects()
]
BENCHES = [
    pytest.param(page, project, id=f"{page.stem}-{project}")
    for page, project in projects()
    if "bench=" in "".join(files(page, project).values())
]


@pytest.mark.parametrize("each", BLOCKS, ids=lambda each: each.name)
def test_every_block_is_exercised(each: Block) -> None:
    if each.language in CODE:
        assert each.role == "file", "name the file that this block is, as tests/docs/pages.py says"
    assert not each.text.startswith("$ ") or each.role == "in", "name the project in which these commands run"


@pytest.mark.parametrize(("page", "project"), PROJECTS)
def test_a_project_works_as_its_page_says(page: Path, project: str, tmp_path: Path, audit: Callable[..., Ran]) -> None:
    lay_out(page, project, tmp_path)
    if (tmp_path / "pyproject.toml").exists():  # two kernels are compared without a project
        load_settings(find_project(tmp_path))
    for command, printed in transcripts(page, project):
        ran = audit(tmp_path, *shlex.split(command)[1:])
        assert masked(printed) == masked(ran.out), ran.err
    if not (tmp_path / "kernels").exists():  # a project of settings alone
        return
    shown = {command for each in (README, page) for command, _ in transcripts(each, project)}
    for shape in shapes(tmp_path, audit):
        if f"audit run --shape {shape}" not in shown:
            ran = audit(tmp_path, "run", "--full", "--shape", shape)
            assert ran.code == 0, ran.out + ran.err
            assert "Warning" not in ran.err


@pytest.mark.parametrize(("page", "project"), BENCHES)
def test_what_a_bench_declares_fits_its_operator(page: Path, project: str, tmp_path: Path) -> None:
    lay_out(page, project, tmp_path)
    for operator, shape in find_project(tmp_path).shapes().values():
        if (bench := operator.bench) is not None:
            case = operator.case(shape, {**bench.axes, bench.axis: bench.values[-1]}, seed=1)
            inputs = operator.inputs(case, case.rng())
            for value in bench.values:
                changed = bench.at(case, inputs, value) if bench.at else {}
                assert all(changed[name].shape == inputs[name].shape for name in changed)
                assert bench.moved is None or bench.moved(case, value) > 0


def load_settings(project: Project) -> None:
    """Read every table of a project's settings that has a reader of its own; each raises for what it refuses."""
    table = tomllib.loads((project.root / "pyproject.toml").read_text())["tool"]["kernel-audit"]
    for name, value in table.get("gate", {}).items():
        if isinstance(value, dict):
            for rule in (found := policy.load_policy(project, name)).audits + found.sanitizers:
                assert all(rule.plan(project, shape).cases for shape in rule.shapes)
    assert len(baseline.load_baseline(project)) == (1 if "baseline" in table.get("gate", {}) else 0)
    assert len(suppressions.declared(project)) == len(table.get("suppressions", ()))


def shapes(home: Path, audit: Callable[..., Ran]) -> list[str]:
    """Every shape that a project declares."""
    return [shape for operator in audit(home, "list", "--json").json["operators"] for shape in operator["shapes"]]


def masked(text: str) -> str:
    """A transcript without what differs between machines and runs: numbers, and where the record went."""
    lines = [line for line in text.splitlines() if not line.startswith(("evidence ", "report "))]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", "\n".join(lines))


def test_the_layer_norm_of_the_docs_is_that_of_its_project() -> None:
    home = ROOT / "tests/projects/pages"
    page = ROOT / "docs/your-kernel.md"
    for path, text in files(page, "layernorm").items():
        assert text == (home / path).read_text(), path
    assert len(files(page, "layernorm")) == 3
