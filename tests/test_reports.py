"""Retained evidence is whole, and says what the index says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.records import bench as bench_record
from audit.records import run as run_record
from audit.records import sanitize
from audit.report.bench_page import render_bench
from audit.report.sanitize_page import render_sanitize

from .conftest import ROOT
from .report.rendered import render

REPORTS = ROOT / "reports"
RETAINED = sorted(path.parent for path in REPORTS.rglob("evidence.json*"))
BENCHES = sorted(path.parent for path in REPORTS.rglob("bench.json*"))
SESSIONS = sorted(path.parent for path in REPORTS.rglob("sanitize.json*"))


def line(folder: Path) -> str:
    (found,) = [
        line for line in (REPORTS / "README.md").read_text().splitlines() if f"({folder.relative_to(REPORTS)}/" in line
    ]
    return found


def test_there_is_evidence_of_every_shape() -> None:
    assert {run_record.KIND.load(folder).plan.shape for folder in RETAINED} == {f"q{rows}" for rows in range(1, 9)}


@pytest.mark.parametrize("folder", RETAINED, ids=lambda folder: folder.name)
def test_retained_evidence_is_whole_and_indexed(folder: Path) -> None:
    evidence = run_record.KIND.load(folder)
    on_both = [result for audit in evidence.audits for result in audit.results if result.check == "host"]
    elements = sum(int(result.detail.split()[0]) for result in on_both)
    assert all(result.verdict == "pass" for result in on_both)
    summary = evidence.summary
    said = f"| {evidence.plan.shape} | {summary.verdict} | {summary.passed} of {summary.planned} | {elements:,} |"
    assert line(folder).startswith(said)
    assert "NVIDIA H200" in (evidence.machine.device or "")
    assert summary.verdict.capitalize() in render(evidence)


@pytest.mark.parametrize("folder", BENCHES, ids=lambda folder: folder.name)
def test_a_retained_bench_is_whole_and_indexed(folder: Path) -> None:
    bench = bench_record.KIND.load(folder)
    differing = sum(one.differing for one in bench.checked)
    assert line(folder).startswith(f"| {bench.shape} | {'fail' if differing else 'pass'} |")
    assert "NVIDIA H200" in (bench.machine.device or "")
    assert bench.shape in render_bench(bench)


@pytest.mark.parametrize("folder", SESSIONS, ids=lambda folder: folder.name)
def test_a_retained_session_is_whole_and_indexed(folder: Path) -> None:
    session = sanitize.KIND.load(folder)
    summary = session.summary
    said = line(folder)
    assert said.startswith(f"| {session.plan.shape} | {summary.verdict} |")
    assert (
        f"{summary.clean} of {summary.planned} clean, {summary.canaries_found} of {summary.canaries} canaries" in said
    )
    assert "NVIDIA H200" in (session.machine.device or "")
    assert session.plan.shape in render_sanitize(session)
