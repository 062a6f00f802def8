"""The page of a session of sanitizers: findings with both sides, suppressions with reasons, what did not run."""

from __future__ import annotations

import html

import msgspec
import pytest

from audit.records.machine import MachineRecord
from audit.records.sanitize import (
    SCHEMA,
    Canary,
    SanitizePlan,
    SanitizeRecord,
    Side,
    Suppression,
    ToolCheck,
    ToolFinding,
    ToolRecord,
    summarize_session,
)
from audit.report.sanitize_page import render_sanitize
from audit.report.template import visible_value
from audit.spec import Case


def session() -> SanitizeRecord:
    """Two tools over two variants in one case: a race with both its sides, a suppressed read, one that did not run."""
    case = Case("q6", "grouped", {"context": 65}, seed=1)
    plan = SanitizePlan("q6", "grouped", "host", ("memcheck", "racecheck"), ("control", "fast"), (case,), 60, False)
    sides = (
        Side("write of 4 bytes", "splits", "kernels/fast.cu", 41, "(0..31,0,0)", "(0,0,0)"),
        Side("read of 4 bytes", "splits", "kernels/fast.cu", 57, "(32,0,0)"),
    )
    race = ToolFinding("racecheck", "race", "error", "splits<6>", "two threads, one word", sides, 12, "RAW <b>text</b>")
    read = ToolFinding(
        "memcheck", "out-of-bounds", "error", "splits<6>", "behind the end", sides[1:], 1, "raw", "known"
    )
    checked = (
        ToolCheck("memcheck", "control", case.id, "pass", "clean", (), 2, 2, 1.5, "b"),
        ToolCheck("memcheck", "fast", case.id, "pass", "all suppressed", (read,), 2, 2, 1.5, "b"),
        ToolCheck("racecheck", "control", case.id, "inconclusive", "the canary was not found", (), 0, 2, 0.5, None),
        ToolCheck("racecheck", "fast", case.id, "fail", "1 finding", (race,), 2, 2, 1.5, "b"),
    )
    canaries = (Canary("stray", "memcheck", True, True, "seen"), Canary("race", "racecheck", False, True, "not seen"))
    return SanitizeRecord(
        schema=SCHEMA,
        kind="sanitize",
        tool="0.1.0",
        started="2026-11-29T18:00:00+00:00",
        command="audit sanitize --shape q6",
        commit=None,
        plan=plan,
        machine=MachineRecord("Linux", "EPYC", 2, "3.11", {}),
        tools=(ToolRecord("memcheck", "AddressSanitizer", ("-g",), "sees no padding"),),
        builds={},
        canaries=canaries,
        checked=checked,
        suppressions=(Suppression("known", "memcheck", "out-of-bounds", "splits", "harmless", "2027-01-01", 1),),
        summary=summarize_session(plan, checked, canaries, (), 5.0),
    )


def test_both_sides_of_a_race_have_their_lines() -> None:
    page = render_sanitize(session())
    assert "write of 4 bytes at kernels/fast.cu:41, splits, threads (0..31,0,0) blocks (0,0,0)" in page
    assert "read of 4 bytes at kernels/fast.cu:57" in page
    assert "RAW &lt;b&gt;text&lt;/b&gt;" in page


def test_suppressions_have_reasons_and_what_failed_comes_first() -> None:
    page = render_sanitize(session())
    assert ">harmless<" in page
    assert page.index("✗ racecheck") < page.index("? racecheck")
    assert "✗ missed" in page


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202egnol", "x" * 10_000]
)
def test_hostile_names_are_text(name: str) -> None:
    record = session()
    side = Side(name, name, name, 3, name, name)
    found = ToolFinding("racecheck", name, "error", name, name, (side, side), 2, name)
    checked = tuple(
        msgspec.structs.replace(one, variant=name, reason=name, findings=(found,), build=name) for one in record.checked
    )
    page = render_sanitize(
        msgspec.structs.replace(
            record,
            command=name,
            commit=name,
            plan=msgspec.structs.replace(record.plan, shape=name, operator=name, variants=(name,)),
            machine=msgspec.structs.replace(record.machine, device=name, processor=name),
            tools=(ToolRecord("racecheck", name, (name,), name),),
            canaries=(Canary(name, "racecheck", True, True, name),),
            checked=checked,
            suppressions=(Suppression(name, "racecheck", name, name, name, name, 1),),
            summary=msgspec.structs.replace(record.summary, reasons=(name,)),
        )
    )
    assert page.count("<script") == 1  # the page's own
    assert "<img" not in page
    assert "\u202e" not in page
    assert str(visible_value(name)) in html.unescape(page)
