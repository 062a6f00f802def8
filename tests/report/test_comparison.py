"""Two evidences side by side: each change in its direction, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from audit.errors import EvidenceError
from audit.records.run import RunRecord
from audit.report.comparison import compare_records, render_comparison

from ..bench.records import bench, pair, point
from .synthetic import synthetic
from .test_sanitize_page import session

NAMES = ("a", "b")


def test_evidence_is_like_itself() -> None:
    for record in (synthetic(), session(), bench(point(1024, pair()))):
        found = compare_records(record, record, NAMES)
        assert found.changes == ()
        assert found.common > 0
        assert found.same > found.common


def test_a_fault_is_worse_and_its_repair_better() -> None:
    right, wrong = synthetic(), synthetic(wrong={(1, 2)})
    case = right.plan.cases[1].id
    worse = {
        (change.group, change.name): (change.before, change.after)
        for change in compare_records(right, wrong, NAMES).of("worse")
    }
    assert worse["verdict", f"variant2, {case}"] == ("pass", "fail")
    assert worse["error", f"final, variant2, {case}"] == ("0.5", "3")
    assert {name for group, name in worse if group == "condition"} == {"bytes", "error:final", "error:precast"}
    back = compare_records(wrong, right, NAMES)
    assert {(change.group, change.name) for change in back.of("better")} == set(worse)
    assert back.of("worse") == []


def test_coverage_that_is_lost_is_worse() -> None:
    found = compare_records(synthetic(), synthetic(missing={(0, 1)}), NAMES)
    assert ("verdict", "did not run") in {(change.group, change.after) for change in found.of("worse")}
    smaller = compare_records(synthetic(4, 3), synthetic(4, 2), NAMES)
    assert {change.after for change in smaller.of("worse") if change.group == "verdict"} == {"absent"}


def test_other_binaries_and_devices_are_told_and_not_judged() -> None:
    evidence = synthetic()
    other = msgspec.structs.replace(
        evidence, commit="d" * 40, machine=msgspec.structs.replace(evidence.machine, device="NVIDIA B200")
    )
    assert [(change.name, change.direction) for change in compare_records(evidence, other, NAMES).changes] == [
        ("commit", "other"),
        ("device", "other"),
    ]


@pytest.mark.parametrize(
    ("times", "direction"), [((0.9, 0.9, 0.9), "worse"), ((0.2, 0.2, 0.2), "better"), ((0.45, 0.52, 0.9), None)]
)
def test_times_count_beyond_their_ranges_only(times: tuple[float, ...], direction: str | None) -> None:
    ones = (1.0, 1.0, 1.0)
    before = bench(point(1024, pair(a_ms=ones, b_ms=(0.5, 0.5, 0.5))))
    found = compare_records(before, bench(point(1024, pair(a_ms=ones, b_ms=times))), NAMES)
    assert [change.direction for change in found.changes] == ([direction] if direction else [])


def test_unlike_evidences_are_refused() -> None:
    with pytest.raises(EvidenceError, match=r"an audit of q6 \(a\) and a session of sanitizers of q6 \(b\)"):
        compare_records(synthetic(), session(), NAMES)
    other = synthetic()
    other = msgspec.structs.replace(other, plan=msgspec.structs.replace(other.plan, shape="q5"))
    with pytest.raises(EvidenceError, match="an audit of q5"):
        compare_records(synthetic(), other, NAMES)


def test_the_page_tells_all_of_it() -> None:
    evidence: RunRecord = synthetic(wrong={(1, 2)})
    page = render_comparison(compare_records(synthetic(), evidence, ("<i>", "b")))
    assert "6 worse, 0 better, 0 other changes" in page
    assert "<i>" not in page
    assert page.count('<td class="worse">') == 6
