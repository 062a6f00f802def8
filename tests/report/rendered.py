"""The page of a run as text."""

from __future__ import annotations

from audit.records.folder import REPORT
from audit.records.run import RunRecord
from audit.report import run_page
from audit.report.project_context import Surroundings


def render(record: RunRecord, context: Surroundings | None = None) -> str:
    """The page of a run, with what its project keeps beside it."""
    return run_page.render(record, context or Surroundings())[REPORT].decode()
