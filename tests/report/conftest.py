"""A real Chromium for pages: the distribution's, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@dataclass
class Opened:
    """A page in the browser, with all that it said on its console and all that it asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="`pip install playwright` drives the browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("pages are tested in a real browser: `apt-get install chromium`")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """`visit({"report.html": content}, "#anchor", color_scheme="dark")`: those files in a folder, the first opened."""
    contexts = []

    def call(files: dict[str, bytes] | str, anchor: str = "", **options: Any) -> Opened:
        files = {"report.html": files.encode()} if isinstance(files, str) else files
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("request", lambda request: opened.asked.append(request.url))
        opened.page.goto((tmp_path / next(iter(files))).as_uri() + anchor)
        return opened

    yield call
    for context in contexts:
        context.close()
