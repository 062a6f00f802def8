"""The list of retained evidence is the one that the folder gives, and tells stale and broken evidence from sound."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.project import find
from audit.report.index import INDEX, Entry, entries, render_index

from ..conftest import ROOT, Ran


def test_the_index_of_this_repository_is_up_to_date() -> None:
    listed = render_index(entries(ROOT / "reports", find(ROOT)))
    written = (ROOT / "reports" / INDEX).read_text(encoding="utf-8")
    assert written == listed, "write it again: audit report --index"


def test_current_stale_and_broken(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--json").json
    reports = softmax_project / "reports"
    kept = Path(shutil.copytree(ran["evidence"], reports / "host" / Path(ran["evidence"]).name))
    (entry,) = entries(reports, find(softmax_project))
    assert (entry.kind, entry.shape, entry.verdict, entry.sources) == ("audit", "softmax", "pass", "current")
    assert entry.told == "2 of 2 audits passed"
    assert (reports / entry.page).is_file()

    source = softmax_project / "kernels/fast.cu"
    source.write_text(source.read_text() + "\n")
    assert entries(reports, find(softmax_project))[0].sources == "stale"

    record = kept / "evidence.json"
    record.write_bytes(record.read_bytes().replace(b'"pass"', b'"fail"', 1))
    (entry,) = entries(reports, find(softmax_project))
    assert (entry.sources, entry.verdict, entry.told) == ("broken", "inconclusive", "altered")
    assert "cannot be read" in render_index([entry])


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "\u202egnol", "x" * 10_000])
def test_hostile_names_are_text(name: str) -> None:
    page = render_index([Entry(name, name, name, name, name, name, "pass", name, "current")])
    assert page.count("<script") == 1  # the page's own
    assert "<img" not in page
    assert "\u202e" not in page


def test_commands_write_index_and_comparison(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    words = ("run", "--shape", "softmax", "--axis", "n=33", "--json")
    right = audit(softmax_project, *words, "--variant", "fast").json["evidence"]
    wrong = audit(softmax_project, *words, "--variant", "wrong").json["evidence"]
    shown = audit(softmax_project, "report", "--index", "runs")
    assert shown.out.strip() == "runs/index.html"
    assert "2 folders." in (softmax_project / "runs/index.html").read_text()
    same = audit(softmax_project, "diff", right, f"{right}/evidence.json")
    assert (same.code, same.out.splitlines()[-1][:26]) == (0, "0 worse, 0 better, 0 other")
    page = softmax_project / "diff.html"
    other = audit(softmax_project, "diff", right, wrong, "-o", str(page))
    assert other.code == 1
    assert "verdict wrong, softmax/seed1/rows=7,n=33: not there -> fail" in other.out
    assert "verdict" in page.read_text()
    refused = audit(softmax_project, "report", "--index")
    assert (refused.code, refused.out) == (2, "")
    assert "expected a folder of retained records" in refused.err
