"""The gate counts an audit only with the comparisons that the declaration asks for, and the best record speaks."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from audit.project import Project, find_project
from audit.records.run import Audit, RunRecord

from ..gate import made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made.project(tmp_path_factory.mktemp("comparisons"))


@pytest.fixture
def project(whole: Project, tmp_path: Path) -> Project:
    return find_project(Path(shutil.copytree(whole.root, tmp_path / "softmax")))


def without_parent(record: RunRecord) -> RunRecord:
    """`fast` as a run left it in which it was the baseline of another variant: no parent, no bytes compared."""
    variants = tuple(
        msgspec.structs.replace(one, parent=None, baseline_only=one.name == "fast") for one in record.plan.variants
    )
    audits = tuple(
        msgspec.structs.replace(one, results=tuple(each for each in one.results if each.check != "bytes"))
        for one in record.audits
    )
    plan = msgspec.structs.replace(record.plan, variants=variants)
    return msgspec.structs.replace(record, plan=plan, audits=audits)


def retained(project: Project) -> Path:
    (folder,) = (project.root / "reports").iterdir()
    return folder


def test_a_whole_record_passes(project: Project) -> None:
    assert made.judge(project).verdict == "pass"


def test_an_audit_that_was_compared_with_nothing_does_not_count(project: Project) -> None:
    made.rewrite(retained(project), without_parent)
    gate = made.judge(project)
    condition = made.condition(gate, "audits softmax on cuda")
    assert (gate.verdict, condition.verdict) == ("inconclusive", "inconclusive")
    assert "lacks a comparison with its parent" in condition.detail


def test_a_newer_record_without_the_comparison_hides_no_older_one_that_has_it(project: Project) -> None:
    folder = retained(project)
    record = without_parent(made.run_record.KIND.load(folder))
    made.write(msgspec.structs.replace(record, started="2026-11-29T00:00:00+00:00"), project.root / "reports")
    assert made.judge(project).verdict == "pass"


def test_a_newer_whole_record_that_fails_speaks(project: Project) -> None:
    def failing(audit: Audit) -> Audit:
        results = tuple(
            msgspec.structs.replace(one, verdict="fail") if one.check == "bytes" else one for one in audit.results
        )
        worst = "fail" if any(one.verdict == "fail" for one in results) else audit.verdict
        return msgspec.structs.replace(audit, results=results, verdict=worst)

    record = made.run_record.KIND.load(retained(project))
    audits = tuple(map(failing, record.audits))
    newer = msgspec.structs.replace(record, audits=audits, started="2026-11-29T00:00:00+00:00")
    summary = made.summarize_run(newer.plan, audits, newer.exposures, 1.0)
    made.write(msgspec.structs.replace(newer, summary=summary), project.root / "reports")
    assert made.judge(project).verdict == "fail"
