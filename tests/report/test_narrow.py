"""Pages on a phone: nothing hangs over the side, no column collapses, charts can be read; and first screens hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from audit.report.bench_page import render_bench

from .conftest import Opened
from .test_bench_page import large
from .test_browser import every_kind

Visit = Callable[..., Opened]
PHONE = {"viewport": {"width": 390, "height": 844}}
KINDS = ("bench", "sanitize", "diff", "index", "pass", "fail")
OVERHANGING = """() => [...document.querySelectorAll('body *')].filter((each) => {
  const scrolls = each.parentElement.closest('.scroll, .command > div, nav, svg');
  return !scrolls && each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 0.5;
}).map((each) => each.outerHTML.slice(0, 100))"""
COLLAPSED = """() => [...document.querySelectorAll('table:not(.map) :is(td, th)')].filter((each) => {
  if (each.closest('.stack thead')) return false; // there for screen readers alone
  const inner = each.clientWidth - 16;
  return each.checkVisibility() && inner < 40 && each.clientHeight > 50; // three lines or more
}).map((each) => `${each.clientWidth} ${each.textContent.trim().slice(0, 60)}`)"""


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_hangs_over_the_side_and_no_column_collapses(visit: Visit, kind: str) -> None:
    opened = visit(every_kind()[kind], **PHONE)
    page = opened.page
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(OVERHANGING) == []
    assert page.evaluate(COLLAPSED) == []
    assert (opened.said, len(opened.asked)) == ([], 1)


def test_both_are_seen_where_they_are_planted(visit: Visit) -> None:
    wide, narrow = '<div style="width: 500px">wide</div>', '<td style="max-width: 20px">a long word</td>'
    planted = f"{wide}<table><tr>{narrow}<td>{'and another ' * 30}</td></tr></table></main>"
    page = visit(every_kind()["pass"].replace("</main>", planted), **PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") > 390
    assert any("500px" in each for each in page.evaluate(OVERHANGING))
    assert any("a long word" in each for each in page.evaluate(COLLAPSED))


@pytest.mark.parametrize("kind", ["bench", "fail"])
def test_the_chart_of_a_phone_has_letters_that_can_be_read(visit: Visit, kind: str) -> None:
    page = visit(every_kind()[kind], **PHONE).page
    assert page.locator("svg.chart.small").first.is_visible()
    assert page.locator("svg.chart.large:visible").count() == 0
    heights = page.evaluate(
        "[...document.querySelectorAll('svg.chart.small text')].filter(each => !each.hasAttribute('transform'))"
        ".map(each => each.getBoundingClientRect().height)"
    )
    assert min(heights) >= 10
    wide = visit(every_kind()[kind], viewport={"width": 1440, "height": 900}).page
    assert wide.locator("svg.chart.small:visible").count() == 0
    assert wide.locator("svg.chart.large").first.is_visible()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_the_first_screen_of_a_bench_has_winner_time_floor_and_chart(visit: Visit, width: int, height: int) -> None:
    page = visit(render_bench(large()), viewport={"width": width, "height": height}).page

    def bottom(selector: str) -> float:
        box = page.locator(f"{selector}:visible").first.bounding_box()
        assert box
        return box["y"] + box["height"]

    assert page.inner_text(".winner") == "visible_tile"
    assert page.inner_text(".time") == "3.353 ms"
    for selector in (".winner", ".time", ".bench dt:has-text('Floor')", "svg.chart path.axis"):
        assert bottom(selector) <= height, selector
    assert bottom("h2#verdicts") > bottom("svg.chart")


def test_a_command_takes_one_line_and_scrolls(visit: Visit) -> None:
    page = visit(every_kind()["sanitize"], **PHONE).page
    for each in page.locator(".command:visible").all():
        box = each.bounding_box()
        assert box
        assert box["height"] <= 36
        assert box["width"] <= 390
    assert page.locator(".facts code").count() == 0
