"""Where a command left its record, and the record's page."""

from __future__ import annotations

import shlex
from pathlib import Path

from audit.records.folder import page_in


def record_paths(home: Path) -> str:
    """Two lines: the record, and its page or the command that renders it."""
    page = page_in(home)
    report = str(page) if page else f"none; {shlex.join(['audit', 'report', str(home)])} renders it"
    return f"evidence {home}\nreport   {report}"


def page_name(home: Path) -> str | None:
    """The page's path, for JSON; None where it could not be rendered."""
    page = page_in(home)
    return str(page) if page else None
