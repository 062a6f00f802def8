"""The project `tests/projects/pages` holds the kernels of README and of `docs/your-kernel.md`, letter for letter."""

from __future__ import annotations

import pytest

from ..conftest import ROOT
from .pages import PAGES, blocks

PROJECT = ROOT / "tests/projects/pages"
SHOWN = {
    f"{kernel}/kernels/{kernel}{suffix}": PROJECT / f"kernels/{kernel}{suffix}"
    for kernel in ("softmax", "layernorm")
    for suffix in (".cu", ".py")
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_what_its_page_shows(name: str) -> None:
    texts = [block.text for page in PAGES for block in blocks(page) if block.role == "file" and block.value == name]
    assert SHOWN[name].read_text() == "".join(texts)


def test_there_is_no_example_that_no_page_shows() -> None:
    assert {path for path in (PROJECT / "kernels").iterdir() if path.is_file()} == set(SHOWN.values())
