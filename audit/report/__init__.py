"""Reports: a record becomes one offline HTML file. The kind of the record names the module that renders it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from audit.errors import EvidenceError
from audit.project import Project
from audit.records.folder import require_outside, write_output
from audit.records.kinds import Record, kind_of

__all__ = ["pages", "write_page"]

_NO_FILES: Mapping[str, bytes] = {}


def pages(record: Record, files: Mapping[str, bytes] = _NO_FILES, project: Project | None = None) -> dict[str, bytes]:
    """The page of a record and the files beside it that it links to, by name.

    `files` are those of the record's folder, unpacked. `project` says what it keeps beside the record; a page can be
    made without one.
    """
    page = import_module(kind_of(record).page)
    rendered: dict[str, bytes] = page.pages(record, files, project)
    return rendered


def write_page(page: Path, files: Mapping[str, bytes]) -> None:
    """Write a page and the files beside it. EvidenceError where that cannot be, or would be in a record."""
    require_outside(page, "a file elsewhere")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvidenceError(f"{page}: the page cannot be written there ({error.strerror})") from None
    for name, content in files.items():
        write_output(page.parent / name, content)
