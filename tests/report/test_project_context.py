"""The page of one run shows which variants are closed, why, by what evidence, and the failures that are kept."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.project import Project, find_project
from audit.records import run as run_record
from audit.records import sanitize
from audit.report.index import IndexEntry
from audit.report.project_context import (
    ClosedVariant,
    ProjectContext,
    RetainedFailure,
    RetainedSession,
    project_context,
)
from audit.report.template import visible_value

from ..conftest import ROOT, Ran
from ..gate import made
from .rendered import render
from .synthetic import synthetic
from .test_sanitize_page import session

ENTRY = IndexEntry("a", "", "audit", "2026-11-29T18:00", "H200", "q6", "fail", "1 of 2 passed", "current")
CLOSED = 'status="closed", why="slower <b>everywhere</b>", evidence=("reports/timed",)'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The softmax project with its wrong variant closed, and one failed and one passed run of it retained."""
    home = Path(shutil.copytree(ROOT / "tests/projects/softmax", tmp_path_factory.mktemp("context") / "softmax"))
    source = home / "kernels/softmax.py"
    closed = f'__import__("dataclasses").replace(variant("wrong", "control"), {CLOSED})'
    source.write_text(source.read_text().replace('variant("wrong", "control")]', f"{closed}]"))
    return home


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole, tmp_path / "softmax")))


def run(project: Project, audit: Callable[..., Ran], variant: str, out: str) -> Path:
    words = ("run", "--shape", "softmax", "--axis", "n=33", "--variant", variant, "--out", out, "--json")
    return Path(project.root / audit(project.root, *words).json["evidence"])


def told(page: str, section: str) -> str:
    """The text of a section of a page."""
    start = page.index(f'<h2 id="{section}"')
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page[start : page.index("<h2", start + 4)])).split())


def test_closed_variants_and_kept_failures_are_on_the_page(project: Project, audit: Callable[..., Ran]) -> None:
    failed = run(project, audit, "wrong", "reports/host")
    passed = run(project, audit, "fast", "reports/host")
    context = project_context(find_project(project.root), "softmax")
    assert context.closed == (ClosedVariant("wrong", "slower <b>everywhere</b>", ("reports/timed",)),)
    (failure,) = context.failures
    assert (failure.entry.name, failure.entry.verdict) == (failed.relative_to(project.root).as_posix(), "fail")
    assert failure.problem.startswith("bytes: wrong, softmax/seed1/rows=7,n=33, steps live, restore: ")

    page = project.root / "page.html"
    assert audit(project.root, "report", str(passed), "-o", str(page)).code == 0
    shown = page.read_text()
    assert told(shown, "closed").endswith("shown by wrong slower <b>everywhere</b> reports/timed")
    assert '<tr id="closed=wrong">' in shown
    assert failed.name in told(shown, "retained")
    assert "1 of 2 audits passed" in told(shown, "retained")
    assert passed.name not in told(shown, "retained")
    # What a plan names is known without any project, as it was then.
    assert "slower <b>everywhere</b> reports/timed" in told(render(run_record.KIND.load(failed)), "closed")
    assert 'id="closed"' not in render(run_record.KIND.load(passed))


def test_inconclusive_and_altered_evidence_is_kept_in_sight(project: Project, audit: Callable[..., Ran]) -> None:
    record = session()
    record = msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, operator="softmax"))
    sanitize.draft(project.root / "reports", record.plan).finish(record, {})
    elsewhere = session()  # of another operator: none of this page's business
    sanitize.draft(project.root / "reports", elsewhere.plan).finish(elsewhere, {})
    passed = run(project, audit, "fast", "reports")
    file = passed / "evidence.json"
    file.write_bytes(file.read_bytes().replace(b'"verdict": "pass"', b'"verdict": "fail"'))
    broken = run(project, audit, "fast", "reports")
    (broken / "evidence.json").write_bytes(b"{")
    context = project_context(find_project(project.root), "softmax")
    assert context.sessions == ()  # one that contradicts itself proves nothing
    failures = context.failures
    assert {(one.entry.sources, one.entry.verdict, one.entry.detail) for one in failures} == {
        ("broken", "inconclusive", "altered"),
        ("broken", "inconclusive", "contradictory"),
    }
    assert len(failures) == 3
    assert any("the file differs" in one.problem for one in failures)


def test_a_project_that_has_lost_its_operator_knows_nothing(project: Project) -> None:
    assert project_context(project, "attention") == ProjectContext()


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "\u202egnol", "x" * 10_000])
def test_hostile_names_are_text(name: str) -> None:
    entry = msgspec.structs.replace(ENTRY, name=name, shape=name, kind=name, detail=name, started=name, device=name)
    page = render(
        synthetic(),
        ProjectContext(
            (ClosedVariant(name, name, (name,)),),
            (RetainedSession(entry, "host", 2, 1),),
            (RetainedFailure(entry, name),),
        ),
    )
    assert page.count("<script") == 2  # the page's own, and its data
    assert "<img" not in page
    assert "\u202e" not in page
    assert str(visible_value(name)) in told(page, "closed")
    assert str(visible_value(name)) in told(page, "retained")
    assert str(visible_value(name)) in told(page, "sanitizers")


def test_the_newest_session_on_such_a_device_has_its_canaries_on_the_first_screen() -> None:
    one = RetainedSession(msgspec.structs.replace(ENTRY, shape="q6"), "host", 9, 9)
    other = RetainedSession(ENTRY, "cuda", 7, 7)
    page = render(synthetic(), ProjectContext(sessions=(other, one)))
    tile = page[page.index("#sanitizers", page.index("<main>")) - 60 :][:260]
    assert "<b>9</b> of 9" in tile
    assert 'class="whole"' in tile
    alone = render(synthetic(), ProjectContext(sessions=(other,)))
    tile = alone[alone.index("<dt>canaries") - 20 :][:260]
    assert 'class="absent"' in tile
    assert "no session" in tile
    assert 'id="sanitizers"' in alone
    assert 'id="sanitizers"' not in render(synthetic())


def test_sessions_that_are_kept_are_listed(tmp_path: Path) -> None:
    project = made.project(tmp_path)
    retained = made.write_session(made.session(project), project.root / "reports")
    (one,) = project_context(find_project(project.root), "softmax").sessions
    assert (one.entry.name, one.backend) == (retained.relative_to(project.root).as_posix(), "host")
    assert (one.canaries, one.found, one.entry.sources) == (1, 1, "current")


def test_this_project_names_every_closed_variant_with_a_reason() -> None:
    project = find_project(ROOT)
    for operator in project.operators.values():
        context = project_context(project, operator.name)
        assert {one.name for one in context.closed} == {v.name for v in operator.variants if v.status == "closed"}
        page = render(synthetic(), context)
        for one in context.closed:
            assert one.why
            assert f"{one.name} {one.why}" in told(page, "closed")
        for failure in context.failures:
            assert failure.entry.name in told(page, "retained")
            assert failure.problem
