"""Retained evidence is whole, and says what the index says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.evidence import store
from audit.report import render

from .conftest import ROOT

RETAINED = sorted(path.parent for path in (ROOT / "reports").rglob("evidence.json"))


def test_there_is_evidence_of_every_shape() -> None:
    assert {store.load(folder).plan.shape for folder in RETAINED} == {f"q{rows}" for rows in range(1, 9)}


@pytest.mark.parametrize("folder", RETAINED, ids=lambda folder: folder.name)
def test_retained_evidence_is_whole_and_indexed(folder: Path) -> None:
    evidence = store.load(folder)
    (line,) = [line for line in (ROOT / "reports/README.md").read_text().splitlines() if folder.name in line]
    on_both = [result for audit in evidence.audits for result in audit.results if result.check == "host"]
    elements = sum(int(result.detail.split()[0]) for result in on_both)
    assert all(result.verdict == "pass" for result in on_both)
    summary = evidence.summary
    said = f"| {evidence.plan.shape} | {summary.verdict} | {summary.passed} of {summary.planned} | {elements:,} |"
    assert line.startswith(said)
    assert "NVIDIA H200" in (evidence.machine.device or "")
    assert f"{summary.verdict.capitalize()} — {evidence.plan.shape}" in render(evidence)
