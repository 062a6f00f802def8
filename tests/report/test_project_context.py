"""The page of one run shows which variants are closed, why, by what evidence, and the failures that are kept."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit.project import Project, find
from audit.records import run as run_record
from audit.records import sanitize
from audit.report.index import Entry
from audit.report.project_context import Closed, Failure, Session, Surroundings, surroundings
from audit.report.template import visible

from ..conftest import ROOT, Ran
from ..gate import made
from .rendered import render
from .synthetic import synthetic
from .test_sanitize_page import session

ENTRY = Entry("a", "a", "audit", "2026-11-29T18:00", "H200", "q6", "fail", "1 of 2 passed", "current")
CLOSED = 'status="closed", why="slower <b>everywhere</b>", evidence=("reports/timed",)'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The softmax project with its wrong variant closed, and one failed and one passed run of it retained."""
    home = Path(shutil.copytree(ROOT / "tests/projects/softmax", tmp_path_factory.mktemp("around") / "softmax"))
    source = home / "kernels/softmax.py"
    closed = f'__import__("dataclasses").replace(variant("wrong", "control"), {CLOSED})'
    source.write_text(source.read_text().replace('variant("wrong", "control")]', f"{closed}]"))
    return home


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    return find(Path(shutil.copytree(whole, tmp_path / "softmax")))


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
    around = surroundings(find(project.root), "softmax")
    assert around.closed == (Closed("wrong", "slower <b>everywhere</b>", ("reports/timed",)),)
    (failure,) = around.failures
    assert (failure.entry.name, failure.entry.verdict) == (failed.relative_to(project.root).as_posix(), "fail")
    assert failure.why.startswith("bytes: wrong, softmax/seed1/rows=7,n=33, steps live, restore: ")

    page = project.root / "page.html"
    assert audit(project.root, "report", str(passed), "-o", str(page)).code == 0
    shown = page.read_text()
    assert told(shown, "closed").endswith("evidence wrong slower <b>everywhere</b> reports/timed")
    assert '<tr id="closed=wrong">' in shown
    assert failed.name in told(shown, "retained")
    assert "1 of 2 audits passed" in told(shown, "retained")
    assert passed.name not in told(shown, "retained")
    # What a plan names is known without any project, as it was then.
    assert "slower <b>everywhere</b> reports/timed" in told(render(run_record.KIND.load(failed)), "closed")
    assert "No closed variant of softmax is known" in told(render(run_record.KIND.load(passed)), "closed")


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
    around = surroundings(find(project.root), "softmax")
    assert around.sessions == ()  # one that contradicts itself proves nothing
    failures = around.failures
    assert {(one.entry.sources, one.entry.verdict, one.entry.told) for one in failures} == {
        ("broken", "inconclusive", "altered"),
        ("broken", "inconclusive", "contradictory"),
    }
    assert len(failures) == 3
    assert any("the file differs" in one.why for one in failures)


def test_a_project_that_has_lost_its_operator_knows_nothing(project: Project) -> None:
    assert surroundings(project, "attention") == Surroundings()


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "\u202egnol", "x" * 10_000])
def test_hostile_names_are_text(name: str) -> None:
    entry = msgspec.structs.replace(ENTRY, name=name, shape=name, kind=name, told=name, started=name, device=name)
    page = render(
        synthetic(),
        Surroundings((Closed(name, name, (name,)),), (Session(entry, "host", 2, 1),), (Failure(entry, name),)),
    )
    assert page.count("<script") == 2  # the page's own, and its data
    assert "<img" not in page
    assert "\u202e" not in page
    assert str(visible(name)) in told(page, "closed")
    assert str(visible(name)) in told(page, "retained")
    assert str(visible(name)) in told(page, "sanitizers")


def test_the_newest_session_on_such_a_device_has_its_canaries_on_the_first_screen() -> None:
    one = Session(msgspec.structs.replace(ENTRY, shape="q6"), "host", 9, 9)
    other = Session(ENTRY, "cuda", 7, 7)
    page = render(synthetic(), Surroundings(sessions=(other, one)))
    tile = page[page.index("#sanitizers", page.index("<main>")) - 60 :][:260]
    assert "<b>9</b> of 9" in tile
    assert 'class="whole"' in tile
    alone = render(synthetic(), Surroundings(sessions=(other,)))
    tile = alone[alone.index("#sanitizers", alone.index("<main>")) - 60 :][:260]
    assert 'class="absent"' in tile
    assert "no session" in tile
    assert "is known to this page" in told(render(synthetic()), "sanitizers")


def test_sessions_that_are_kept_are_listed(tmp_path: Path) -> None:
    project = made.project(tmp_path)
    retained = made.write_session(made.session(project), project.root / "reports")
    (one,) = surroundings(find(project.root), "softmax").sessions
    assert (one.entry.name, one.backend) == (retained.relative_to(project.root).as_posix(), "host")
    assert (one.canaries, one.found, one.entry.sources) == (1, 1, "current")


def test_this_project_names_every_closed_variant_with_a_reason() -> None:
    project = find(ROOT)
    for operator in project.operators.values():
        around = surroundings(project, operator.name)
        assert {one.name for one in around.closed} == {v.name for v in operator.variants if v.status == "closed"}
        page = render(synthetic(), around)
        for one in around.closed:
            assert one.why
            assert f"{one.name} {one.why}" in told(page, "closed")
        for failure in around.failures:
            assert failure.entry.name in told(page, "retained")
            assert failure.why
