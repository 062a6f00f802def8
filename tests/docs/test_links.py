"""Every relative link of a page leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..conftest import ROOT
from .pages import LINKED, README

_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and most renderers make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong(page: Path, text: str) -> list[str]:
    """The links of a text that lead nowhere."""
    found = []
    for target in _LINK.findall(text):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in slugs(there)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert wrong(page, page.read_text()) == []


def test_a_link_to_nowhere_is_seen() -> None:
    assert wrong(README, "[a](docs/none.md) [b](README.md#none) [c](README.md)") == ["docs/none.md", "README.md#none"]


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150
