"""What is admitted stands on evidence that is present, unaltered, and passes; a closed variant says what closed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from audit.gate.verdict import Condition
from audit.project import Project, find_project
from audit.records import bench as bench_record
from audit.records import run as run_record
from audit.records.bench import ComparedBytes
from audit.records.run import RunRecord

from ..bench.records import bench, pair, point
from .made import audited_builds, condition, judge, rewrite
from .test_decision import fails, only


def standing(project: Project, name: str, said: str) -> Project:
    """The project with one variant declared otherwise, such as `status="admitted"`."""
    source = project.root / "kernels/softmax.py"
    text, plain = source.read_text(), f'variant("{name}", "control")'
    assert text.count(plain) == 1
    source.write_text(text.replace(plain, f'__import__("dataclasses").replace({plain}, {said})'))
    return find_project(project.root)


def admitted(project: Project, evidence: str) -> Condition:
    made = standing(project, "fast", f'status="admitted", evidence=({evidence})')
    return condition(judge(made), "admitted variants of softmax")


def named(project: Project) -> str:
    return f'"{only(project.root / "reports").relative_to(project.root).as_posix()}",'


def test_evidence_that_is_there_and_passes(project: Project) -> None:
    found = admitted(project, named(project))
    assert (found.verdict, found.measured, found.detail) == ("pass", "1", "")
    assert found.required == "1 with evidence that is present, unaltered, and passes"


def test_evidence_that_is_not_there(project: Project) -> None:
    found = admitted(project, '"reports/none", "../elsewhere"')
    assert (found.verdict, found.measured) == ("fail", "0")
    assert found.detail == "fast: its evidence is missing: reports/none, ../elsewhere"


def test_evidence_that_was_altered(project: Project) -> None:
    folder = named(project)
    page = only(project.root / "reports") / "report.html"
    page.write_bytes(page.read_bytes() + b" ")
    found = admitted(project, folder)
    assert found.verdict == "fail"
    assert "cannot be used: altered" in found.detail


def test_evidence_that_fails(project: Project) -> None:
    rewrite(only(project.root / "reports"), fails)
    found = admitted(project, named(project))
    assert found.verdict == "fail"
    assert found.detail == "fast: it fails in softmax/seed1/rows=7,n=33"


def test_the_newest_of_a_case_decides(project: Project) -> None:
    folder = only(project.root / "reports")
    good = run_record.KIND.load(folder)
    rewrite(folder, lambda evidence: msgspec.structs.replace(fails(evidence), started="2026-11-01T09:00:00+00:00"))
    folder = named(project)
    run_record.draft(project.root / "reports", good.plan).finish(good, {"report.html": b""})
    assert admitted(project, folder).verdict == "pass"


def doubtful(evidence: RunRecord) -> RunRecord:
    audits = [
        msgspec.structs.replace(
            one,
            verdict="inconclusive",
            results=tuple(msgspec.structs.replace(result, verdict="inconclusive") for result in one.results),
        )
        if one.variant == "fast"
        else one
        for one in evidence.audits
    ]
    return msgspec.structs.replace(evidence, audits=tuple(audits))


def test_evidence_that_is_inconclusive(project: Project) -> None:
    rewrite(only(project.root / "reports"), doubtful)
    found = admitted(project, named(project))
    assert (found.verdict, found.detail[:21]) == ("inconclusive", "fast: inconclusive in")


def test_evidence_of_a_host_alone(project: Project) -> None:
    shutil.rmtree(only(project.root / "reports"))
    found = admitted(project, "")
    assert (found.verdict, found.detail) == ("inconclusive", "fast: no evidence of fast on cuda is whole and unaltered")


def timed(project: Project, differing: int) -> Path:
    """A bench that compared `fast` and timed its parent alone, since what differs is not timed."""
    record = bench(point(1024, pair("peer", peer=True)))
    record = msgspec.structs.replace(
        record,
        builds={"control": audited_builds(project)[next(iter(audited_builds(project)))]},
        checked=(ComparedBytes("fast", "control", 1024, 1000, differing),),
    )
    return bench_record.draft(project.root / "timed", "softmax").finish(record, {})


@pytest.mark.parametrize(("differing", "verdict"), [(0, "pass"), (3, "fail")])
def test_a_bench_of_other_bytes_admit_nothing(project: Project, differing: int, verdict: str) -> None:
    folder = timed(project, differing).relative_to(project.root).as_posix()
    found = admitted(project, f'{named(project)} "{folder}"')
    assert found.verdict == verdict
    assert ("3 results unlike its parent's" in found.detail) == bool(differing)


@pytest.mark.parametrize(
    ("folder", "verdict", "detail"),
    [("reports", "pass", ""), ("reports/none", "inconclusive", "wrong: its evidence is missing: reports/none")],
)
def test_a_closed_variant_names_what_is_there(project: Project, folder: str, verdict: str, detail: str) -> None:
    made = standing(project, "wrong", f'status="closed", why="slow", evidence=("{folder}",)')
    found = condition(judge(made), "closed variants of softmax")
    assert (found.verdict, found.measured, found.detail) == (verdict, "0 of 1", detail)
