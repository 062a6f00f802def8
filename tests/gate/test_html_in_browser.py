"""The gate's page in a real Chromium: a phone's width, both schemes, axe, and never online."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest

from audit.gate.formats.html import html, links_from

from .test_formats import CONDITIONS, FOUND, gate
from .test_html import RETAINED

if TYPE_CHECKING:
    from playwright.sync_api import Page

T = TypeVar("T")


@dataclass
class Console:
    """What a page said, and what it asked for."""

    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Inspect = Callable[..., Any]


@pytest.fixture
def inspect(tmp_path: Path) -> Inspect:
    """`inspect(look, width=390)`: `look(page, console)` over the page of a failed gate, beside a record's page."""
    playwright = pytest.importorskip("playwright.sync_api", reason="`pip install playwright` drives the browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("pages are tested in a real browser: `apt-get install chromium`")
    verdict = msgspec.structs.replace(
        gate((*CONDITIONS, RETAINED), FOUND), evidence=("runs/x", "runs/y", "reports/a b", "r")
    )
    (tmp_path / "runs/y").mkdir(parents=True)
    (tmp_path / "runs/y/report.html").write_text("<title>the record</title>")
    page_file = tmp_path / "runs/gate.html"
    page_file.write_text(html(verdict, links_from(page_file.parent, tmp_path)), encoding="utf-8")

    def drive(look: Callable[[Page, Console], T], width: int, options: dict[str, Any]) -> T:
        console = Console()
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": width, "height": 800}, **options).new_page()
            page.on("console", lambda message: console.said.append(message.text))
            page.on("pageerror", lambda error: console.said.append(str(error)))
            page.on("request", lambda request: console.requests.append(request.url))
            page.goto(page_file.as_uri())
            found = look(page, console)
            browser.close()
        return found

    def call(look: Callable[[Page, Console], T], width: int = 1280, **options: Any) -> T:
        # Playwright allows one driver a thread, and the tests of reports hold one in this thread.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(drive, look, width, options).result()

    return call


def test_the_first_screen_has_the_verdict_and_what_does_not_hold(inspect: Inspect) -> None:
    def look(page: Page, console: Console) -> None:
        for selector in ("h1.fail", "article.failure.fail"):
            box = page.locator(selector).first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 800, selector
        assert page.inner_text("h1") == "✗ Fail — gate, policy everyday"
        assert not page.get_by_text("audits q6 on host").is_visible()
        page.click("summary:has-text('1 condition holds')")
        assert page.get_by_text("audits q6 on host").is_visible()
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.className") == "failure fail"
        assert (console.said, len(console.requests)) == ([], 1)

    inspect(look)


def test_links_lead_to_pages_of_records(inspect: Inspect) -> None:
    def look(page: Page, _console: Console) -> str:
        page.locator("article.failure a").first.click()
        return page.title()

    assert inspect(look) == "the record"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(inspect: Inspect, scheme: str) -> None:
    def look(page: Page, _console: Console) -> None:
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        narrow = (
            "[...document.querySelectorAll('article dd, article p, main li')]"
            ".map(each => each.getBoundingClientRect().width)"
        )
        widths = page.evaluate(narrow)
        assert len(widths) > 10
        assert min(widths) >= 150
        background = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background

    inspect(look, 390, color_scheme=scheme)


def test_accessible_by_the_rules_of_axe(inspect: Inspect) -> None:
    package = pytest.importorskip("axe_playwright_python", reason="`pip install axe-playwright-python`")
    script = (resources.files(package) / "axe.min.js").read_text(encoding="utf-8")

    def look(page: Page, _console: Console) -> None:
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        page.evaluate(script)
        for scheme, rules in (("light", None), ("dark", ["color-contrast", "link-in-text-block"])):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            found = page.evaluate("only => axe.run(document, only ? { runOnly: only } : {})", rules)
            first = [(rule["id"], rule["nodes"][0]) for rule in found["violations"]]
            assert [(rule, node["html"], node["failureSummary"]) for rule, node in first] == []
            assert len(found["passes"]) >= (1 if rules else 15)
        page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button>')")
        planted = page.evaluate("() => axe.run(document)")["violations"]
        assert "button-name" in {rule["id"] for rule in planted}

    inspect(look, color_scheme="light")
