"""The list of retained evidence is the one that the folder gives, and tells stale and broken evidence from sound."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.project import find_project
from audit.report.index import INDEX, IndexEntry, by_device, entries, render_index

from ..conftest import ROOT, Ran
from .conftest import Opened


def test_the_index_of_this_repository_is_up_to_date() -> None:
    listed = render_index(entries(ROOT / "reports", find_project(ROOT)))
    written = (ROOT / "reports" / INDEX).read_text(encoding="utf-8")
    assert written == listed, "write it again: audit report --index"


def test_current_stale_and_broken(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(softmax_project, "run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--json").json
    reports = softmax_project / "reports"
    kept = Path(shutil.copytree(ran["evidence"], reports / "host" / Path(ran["evidence"]).name))
    (entry,) = entries(reports, find_project(softmax_project))
    assert entry.page == f"host/{kept.name}/report.html"
    assert (entry.kind, entry.shape, entry.verdict, entry.sources) == ("audit", "softmax", "pass", "current")
    assert entry.detail == "2 of 2 audits passed"
    assert (reports / entry.page).is_file()

    source = softmax_project / "kernels/fast.cu"
    source.write_text(source.read_text() + "\n")
    assert entries(reports, find_project(softmax_project))[0].sources == "stale"

    record = kept / "evidence.json"
    record.write_bytes(record.read_bytes().replace(b'"pass"', b'"fail"', 1))
    (entry,) = entries(reports, find_project(softmax_project))
    assert (entry.sources, entry.verdict, entry.detail) == ("broken", "inconclusive", "altered")
    assert "Cannot be read" in render_index([entry])


def test_a_folder_without_a_page_names_the_command_that_renders_it(
    softmax_project: Path, audit: Callable[..., Ran]
) -> None:
    words = ("run", "--shape", "softmax", "--variant", "fast", "--axis", "n=33", "--json")
    ran = audit(softmax_project, *words).json
    assert audit(softmax_project, "retain", ran["evidence"], "--into", "reports").code == 0
    (entry,) = entries(softmax_project / "reports", find_project(softmax_project))
    assert (entry.page, entry.name) == ("", f"reports/{Path(ran['evidence']).name}")
    page = render_index([entry])
    command = f"audit report {entry.name}"
    assert f"<code>{command}</code>" in page
    assert 'href="reports' not in page
    rendered = audit(softmax_project, *command.split()[1:])
    assert (rendered.code, (softmax_project / rendered.out.strip()).is_file()) == (0, True)


def listed(name: str, device: str, shape: str, started: str, **other: Any) -> IndexEntry:
    plain = IndexEntry(name, "", "audit", started, device, shape, "pass", "2 of 2 audits passed", "current")
    return msgspec.structs.replace(plain, **other)


LISTED = [
    listed("a", "H200, sm_90", "q10", "2026-11-01"),
    listed("b", "H200, sm_90", "q2", "2026-11-02"),
    listed("c", "H200, sm_90", "q2", "2026-11-03", verdict="fail", kind="sanitize"),
    listed("d", "B200, sm_100", "q2", "2026-12-01", sources="stale"),
    listed("e", "", "", "", verdict="inconclusive", detail="altered", sources="broken"),
]


def test_records_lie_by_device_and_shape_newest_first() -> None:
    found = [
        (one.device, [(each.shape, [e.name for e in each.entries]) for each in one.shapes]) for one in by_device(LISTED)
    ]
    assert found == [
        ("", [("", ["e"])]),
        ("B200, sm_100", [("q2", ["d"])]),
        ("H200, sm_90", [("q2", ["c", "b"]), ("q10", ["a"])]),
    ]
    headings = re.findall(r"<h[23][^>]*>\s*(.*?)\s*</h[23]>", render_index(LISTED))
    assert headings[:-1] == [
        "Cannot be read",
        'B200 <span class="soft">sm_100</span>', "q2",
        'H200 <span class="soft">sm_90</span>', "q2", "q10",
    ]  # fmt: skip


def test_the_list_can_be_filtered_without_a_network(visit: Callable[..., Opened]) -> None:
    opened = visit(render_index(LISTED))
    page = opened.page

    commands = page.locator(".command:visible code").all_inner_texts()
    assert commands == [f"audit report {name}" for name in "edcba"]
    page.select_option("select[name=shape]", "q2")
    assert (page.inner_text("#count"), page.locator("tr[data-row]:visible").count()) == ("3 of 5 records shown", 3)
    page.select_option("select[name=verdict]", "fail")
    assert page.locator("tr[data-row]:visible").count() == 1
    assert page.locator("section.device:visible h2").all_inner_texts() == ["H200 sm_90"]
    page.select_option("select[name=shape]", "")
    page.select_option("select[name=verdict]", "")
    page.fill("#search", "b200")
    assert page.inner_text("#count") == "1 of 5 records shown"
    page.fill("#search", "altered")
    assert page.locator("section.device:visible h2").all_inner_texts() == ["Cannot be read"]
    assert (opened.said, len(opened.asked)) == ([], 1)


def test_without_scripts_all_records_are_there_and_no_filter(visit: Callable[..., Opened]) -> None:
    page = visit(render_index(LISTED), java_script_enabled=False).page
    assert page.locator("tr[data-row]:visible").count() == 5
    assert not page.is_visible("#rows")


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "\u202egnol", "x" * 10_000])
def test_hostile_names_are_text(name: str) -> None:
    page = render_index([IndexEntry(name, name, name, name, name, name, "pass", name, "current")])
    assert page.count("<script") == 1  # the page's own
    assert "<img" not in page
    assert "\u202e" not in page


def test_commands_write_index_and_comparison(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    words = ("run", "--shape", "softmax", "--axis", "n=33", "--json")
    right = audit(softmax_project, *words, "--variant", "fast").json["evidence"]
    wrong = audit(softmax_project, *words, "--variant", "wrong").json["evidence"]
    shown = audit(softmax_project, "report", "--index", "runs")
    assert shown.out.strip() == "runs/index.html"
    assert "2 folders, by device and shape" in (softmax_project / "runs/index.html").read_text()
    same = audit(softmax_project, "diff", right, f"{right}/evidence.json")
    assert (same.code, same.out.splitlines()[-1][:26]) == (0, "0 worse, 0 better, 0 other")
    page = softmax_project / "diff.html"
    other = audit(softmax_project, "diff", right, wrong, "-o", str(page))
    assert other.code == 1
    assert "verdict wrong, softmax/seed1/rows=7,n=33: absent -> fail" in other.out
    assert "verdict" in page.read_text()
    refused = audit(softmax_project, "report", "--index")
    assert (refused.code, refused.out) == (2, "")
    assert "expected a folder of retained records" in refused.err
