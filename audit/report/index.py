"""The list of retained evidence: what it is about, what it says, whether it is about the sources that stand here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from audit.checks.result import Verdict
from audit.project import Project
from audit.records import folder, verify
from audit.records.kinds import kind_of
from audit.records.verify import Verified
from audit.report.template import template

Sources = Literal["current", "stale", "broken"]
INDEX = "index.html"


class Entry(msgspec.Struct, frozen=True):
    """One folder of evidence. `broken` evidence proves nothing: `told` says why, and its verdict is inconclusive."""

    page: str  # relative to the index
    name: str
    kind: str
    started: str
    device: str
    shape: str
    verdict: Verdict
    told: str
    sources: Sources


def entries(reports: Path, project: Project) -> list[Entry]:
    """Every folder of evidence below `reports`, the newest first."""
    homes = [home for home in verify.find(reports) if (home / folder.SUMS).is_file()]
    found = [entry_of(verify.verify(home, project), reports) for home in homes]
    return sorted(found, key=lambda entry: (entry.started, entry.name), reverse=True)


def render_index(found: list[Entry]) -> str:
    """The page that lists them."""
    return template("index.html.j2").render(entries=found, marks={"pass": "✓", "fail": "✗", "inconclusive": "?"})


def entry_of(verified: Verified, reports: Path) -> Entry:
    """What a list in the folder `reports` says of one folder of evidence below it."""
    home = verified.path.relative_to(reports).as_posix()
    page = quote(f"{home}/{folder.REPORT}")
    record = verified.record
    if record is None or not verified.sound:
        reason = next(fault for fault in verified.faults if fault.kind != "stale").kind
        return Entry(page, home, "", "", "", "", "inconclusive", reason, "broken")
    sources: Sources = "stale" if verified.faults else "current"
    says = kind_of(record).headline(record)
    device = record.machine.device or record.machine.processor
    name = kind_of(record).name
    return Entry(page, home, name, record.started, device, says.shape, says.verdict, says.counts, sources)
