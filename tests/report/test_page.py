"""The page says what the evidence says, offline, and hostile evidence does no harm."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from audit import plan as planning
from audit.plan import Selection
from audit.project import find_project
from audit.records.run import RunRecord, summarize_run
from audit.report import run_page
from audit.report.failures import reproduce
from audit.run import run

from .rendered import render
from .synthetic import synthetic

PROJECT = Path(__file__).parents[1] / "projects/softmax"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    project = Path(shutil.copytree(PROJECT, tmp_path_factory.mktemp("report") / "softmax"))
    plan = planning.make_plan(
        find_project(project), "softmax", Selection(axes={"n": [1, 33]}), arch="sm_90", time_limit=60
    )
    return run(find_project(project), plan, project / "runs", "audit run")[0]


def test_verdict_and_counts_come_first(evidence: RunRecord) -> None:
    page = render(evidence)
    first = " ".join(re.sub("<[^>]*>", "", page[page.index("<main>") :][:1200]).split())
    assert first.startswith(
        "✗ Fail — softmax (softmax, on this CPU, from the same CUDA source) 1 of 11 conditions failed."
    )
    assert "Audits: 1 failed, 0 inconclusive, 5 passed, of 6 planned; 6 ran" in first


def test_a_failure_shows_bits_place_and_command(evidence: RunRecord) -> None:
    page = render(evidence)
    failed = next(audit for audit in evidence.audits if audit.verdict == "fail")
    assert re.search(r"the first y\[rows=\d+, n=\d+\] is 0x[0-9a-f]{8}, parent control has 0x[0-9a-f]{8}", page)
    assert reproduce(evidence, failed) == (
        "audit run --shape softmax --variant wrong --seed 1 --axis rows=7 --axis n=33 --arch sm_90"
    )
    assert reproduce(evidence, failed) in page


def test_every_hash_is_there(evidence: RunRecord) -> None:
    page = render(evidence)
    for build in evidence.builds.values():
        assert build.binary_sha256 in page
        assert all(digest in page for digest in build.sources.values())
    assert all(record.inputs_sha256 in page for record in evidence.cases)


def test_nothing_is_fetched_from_elsewhere(evidence: RunRecord) -> None:
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)|@import|url\(""", render(evidence))


def test_what_did_not_run_is_shown_as_such(evidence: RunRecord) -> None:
    partial = evidence.audits[:1]
    summary = summarize_run(evidence.plan, partial, evidence.exposures, 1.0)
    assert (summary.verdict, summary.planned, summary.ran, summary.inconclusive) == ("inconclusive", 6, 1, 5)
    page = render(msgspec.structs.replace(evidence, audits=partial, summary=summary))
    assert len(re.findall(r'<td class="cell absent"><a [^>]*>–</a>', page)) == 5
    assert len(re.findall(r'<td class="absent" colspan="\d+">did not run</td>', page)) == 5
    assert not re.search(r'class="[^"]*pass[^"]*"[^>]*>[^<]*did not run', page)
    assert "not all that was planned has run" in page


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202egnol", "x" * 10_000]
)
def test_hostile_names_are_text(evidence: RunRecord, name: str) -> None:
    variants = tuple(msgspec.structs.replace(variant, name=name) for variant in evidence.plan.variants)
    audits = tuple(
        msgspec.structs.replace(
            audit,
            variant=name,
            results=tuple(msgspec.structs.replace(r, detail=name, where=name) for r in audit.results),
        )
        for audit in evidence.audits
    )
    page = render(
        msgspec.structs.replace(
            evidence, plan=msgspec.structs.replace(evidence.plan, variants=variants), audits=audits, command=name
        )
    )
    assert page.count("<script") == 2  # the page's own, and its data
    assert "<img" not in page
    assert "\u202e" not in page


def test_where_bytes_differ_is_drawn_from_a_real_run(evidence: RunRecord) -> None:
    failed = next(audit for audit in evidence.audits if audit.verdict == "fail")
    (result, *others) = [result for result in failed.results if result.check == "bytes"]
    (found,) = result.differences
    assert (found.buffer, found.dims, found.extents) == ("y", ("rows",), (7,))
    assert result.measured
    assert sum(found.values()) == float(result.measured.text)
    assert all(not other.differences for other in others)
    assert '<svg class="heat"' in render(evidence)


def test_ulp_histograms_count_every_element(evidence: RunRecord) -> None:
    metrics = [metric for audit in evidence.audits for metric in audit.metrics]
    assert metrics == []  # this operator names no array to measure
    assert 'id="metrics"' not in render(evidence)
    page = render(synthetic())
    assert page.count('<svg class="bars"') == 2
    assert '<td class="number">2 to 3</td><td class="number">120</td>' in page  # 12 audits, 10 elements each


def test_longer_tables_lie_beside_the_page() -> None:
    files = run_page.render(synthetic(100, 3))
    (errors,) = [name for name in files if name.startswith("errors-")]
    assert hashlib.sha256(files[errors]).hexdigest().startswith(errors[len("errors-") : -len(".csv")])
    assert len(files[errors].splitlines()) == 1 + 100 * 3 * 2
    assert f'href="{errors}"' in files["report.html"].decode()
    assert set(run_page.render(synthetic())) == {"report.html"}


def test_a_record_that_contradicts_itself_is_still_shown() -> None:
    evidence = synthetic(wrong={(0, 1)})
    plan = msgspec.structs.replace(evidence.plan, cases=evidence.plan.cases[1:], variants=evidence.plan.variants[:1])
    page = render(msgspec.structs.replace(evidence, plan=plan))
    assert "The plan has no such variant or case." in page
    empty = msgspec.structs.replace(plan, cases=())
    page = render(msgspec.structs.replace(evidence, plan=empty, audits=(), cases=(), exposures=()))
    assert "inconclusive" in page
