"""What is missing or no longer true is told on the first screen of a page, without scrolling, and is never green."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import msgspec
import pytest

from audit.records import sanitize as sanitize_record
from audit.records.sanitize import summarize_session
from audit.report.index import render_index
from audit.report.sanitize_page import render_sanitize

from .conftest import Opened
from .rendered import render
from .synthetic import synthetic
from .test_browser import ENTRY, in_sight
from .test_sanitize_page import session

Visit = Callable[..., Opened]


@pytest.mark.parametrize(
    ("missing", "name", "told"),
    [
        ({(0, 0)}, "coverage: planned audits", "17 of 18 of what was planned ran"),
        ({(5, column) for column in range(3)}, "coverage: captures", "1 of 2 captured cases ran"),
    ],
)
def test_what_was_planned_and_did_not_run(visit: Visit, missing: set[tuple[int, int]], name: str, told: str) -> None:
    opened = visit(render(synthetic(6, 3, missing=missing)))
    assert in_sight(opened, "h1.inconclusive")
    row = opened.page.locator(".ranked tr.open", has_text=name)
    assert row.locator("td.inconclusive").inner_text() == f"?\N{NO-BREAK SPACE}{name}"
    assert told in row.inner_text()
    assert in_sight(opened, f".ranked tr.open:has-text('{name}')")
    assert in_sight(opened, ".tiles .short")
    assert in_sight(opened, "table.map td.absent")


def test_a_canary_that_was_not_found(visit: Visit) -> None:
    record = session()
    passed = tuple(one for one in record.checked if one.verdict != "fail")
    plan = msgspec.structs.replace(record.plan, variants=("control",))
    checked = tuple(one for one in passed if one.variant == "control")
    summary = summarize_session(plan, checked, record.canaries, (), 5.0)
    opened = visit(render_sanitize(msgspec.structs.replace(record, plan=plan, checked=checked, summary=summary)))
    assert in_sight(opened, "h1.inconclusive")
    assert in_sight(opened, ".tiles .short:has-text('canaries')")
    assert "1 of 2 found" in opened.page.inner_text(".tiles .short:has-text('canaries')")
    assert in_sight(opened, "section.verdict p:has-text('the canary was not found')")


def test_a_suppression_that_expired(visit: Visit) -> None:
    record = session()
    complaints = sanitize_record.complaints(record.suppressions, date(2027, 1, 2), ())
    summary = summarize_session(record.plan, record.checked, record.canaries, complaints, 5.0)
    opened = visit(render_sanitize(msgspec.structs.replace(record, summary=summary)))
    assert in_sight(opened, "h1.fail")
    assert in_sight(opened, "section.verdict p:has-text(\"suppression 'known' expired on 2027-01-01\")")


def test_sources_that_changed_and_evidence_that_was_altered(visit: Visit) -> None:
    stale = msgspec.structs.replace(ENTRY, sources="stale")
    altered = msgspec.structs.replace(
        ENTRY, sources="broken", verdict="inconclusive", detail="altered", started="", device="", shape=""
    )
    opened = visit(render_index([stale, altered]))
    assert in_sight(opened, "td .inconclusive:has-text('stale')")
    assert in_sight(opened, "h2:has-text('Cannot be read')")
    broken = ".device:has-text('Cannot be read') tr[data-row]"
    assert in_sight(opened, f"{broken} .inconclusive:has-text('? inconclusive')")
    assert "altered" in opened.page.inner_text(broken)
    assert opened.page.locator(f"{broken} .pass").count() == 0
