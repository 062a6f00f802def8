"""The reference page is what its script makes of the docstrings, and leaves no field of the declaration unexplained."""

from __future__ import annotations

import runpy

import audit

from ..conftest import ROOT

PAGE, SCRIPT = ROOT / "docs/reference.md", ROOT / "docs/make_reference.py"
MADE = runpy.run_path(str(SCRIPT))


def test_the_page_is_what_the_script_makes() -> None:
    assert PAGE.read_text() == MADE["page"](), "run `python docs/make_reference.py`"


def test_every_public_name_is_on_the_page() -> None:
    text = PAGE.read_text()
    assert [name for name in audit.__all__ if f"### {name}\n" not in text] == []


def test_every_field_is_explained() -> None:
    assert MADE["unexplained"]() == []
