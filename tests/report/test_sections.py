"""A section with nothing in it is not on the page, and the links on top lead to those that are."""

from __future__ import annotations

import re

import msgspec
import pytest

from audit.records.sanitize import summarize_session
from audit.report.bench_page import render_bench
from audit.report.project_context import ClosedVariant, ProjectContext
from audit.report.sanitize_page import render_sanitize

from ..bench.records import bench, pair, point
from .rendered import render
from .synthetic import synthetic
from .test_sanitize_page import session


def sections(page: str) -> list[str]:
    """The ids of the headings of a page, in order, below the first screen of a run."""
    first = ("worst-title", "matrix", "help-title") if 'id="worst-title"' in page else ("help-title",)
    return [name for name in re.findall(r'<h2 id="([^"]+)"', page) if name not in first]


def links(page: str) -> list[str]:
    (nav,) = re.findall(r"<nav.*?</nav>", page, re.DOTALL)
    return re.findall(r'href="#([^"]+)"', nav)


def test_a_run_that_passes_has_no_findings_and_nothing_of_what_it_did_not_do() -> None:
    page = render(synthetic())
    assert sections(page) == [
        "cases", "conditions", "variants", "errors", "metrics", "vacuity", "captures", "identity", "inputs"
    ]  # fmt: skip
    assert links(page) == [name for name in sections(page) if name != "variants"]
    assert 'class="skip" href="#cases"' in page


def test_a_run_that_fails_has_them_first() -> None:
    page = render(synthetic(wrong={(0, 1)}), ProjectContext(closed=(ClosedVariant("slow", "slower", ()),)))
    assert sections(page)[:2] == ["failed", "cases"]
    assert "closed" in sections(page)
    assert 'class="skip" href="#failed"' in page


def test_what_a_run_lacks_is_said_where_it_matters() -> None:
    """No audit ran: an inconclusive page says so, and has no empty table."""
    record = synthetic(2, 2, missing={(row, column) for row in range(2) for column in range(2)})
    page = render(msgspec.structs.replace(record, exposures=(), builds={}))
    assert sections(page) == ["failed", "cases", "conditions", "variants", "captures"]
    assert "No check failed, but not all that was planned has run." in page


@pytest.mark.parametrize(("field", "section"), [("checked", "bytes"), ("errors", "errors"), ("peers", "peers"),
                                                ("skipped", "skipped"), ("builds", "identity")])  # fmt: skip
def test_a_bench_shows_what_it_has(field: str, section: str) -> None:
    record = bench(point(1024, pair()))
    full = render_bench(record)
    assert (section in sections(full)) == bool(getattr(record, field))
    empty = render_bench(msgspec.structs.replace(record, **{field: type(getattr(record, field))()}))
    assert section not in sections(empty)
    assert section not in links(empty)
    assert {"frozen", "added"}.isdisjoint(sections(full))


def test_a_clean_session_has_neither_findings_nor_suppressions() -> None:
    record = session()
    checked = tuple(one for one in record.checked if one.tool == "memcheck")
    plan = msgspec.structs.replace(record.plan, tools=("memcheck",))
    canaries = tuple(one for one in record.canaries if one.tool == "memcheck")
    clean = msgspec.structs.replace(
        record, plan=plan, checked=checked, canaries=canaries, suppressions=(),
        summary=summarize_session(plan, checked, canaries, (), 5.0),
    )  # fmt: skip
    assert clean.summary.verdict == "pass"
    page = render_sanitize(clean)
    assert sections(page) == links(page) == ["matrix", "tools", "canaries", "checked"]
    assert sections(render_sanitize(record)) == ["findings", "matrix", "tools", "canaries", "suppressions", "checked"]
