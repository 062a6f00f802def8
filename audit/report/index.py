"""The list of retained evidence: what it is about, what it says, whether it is about the sources that stand here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from audit.checks.result import Verdict
from audit.project import Project
from audit.records import folder, verify
from audit.records.bench import BenchEvidence
from audit.records.run import Evidence
from audit.records.sanitize import SanitizeEvidence
from audit.records.verify import Record, Verified
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
    shape = record.shape if isinstance(record, BenchEvidence) else record.plan.shape
    kind, verdict, told = _says(record)
    device = record.machine.device or record.machine.processor
    return Entry(page, home, kind, record.started, device, shape, verdict, told, sources)


def _says(record: Record) -> tuple[str, Verdict, str]:
    """Kind, verdict and a sentence."""
    if isinstance(record, Evidence):
        summary = record.summary
        return "audit", summary.verdict, f"{summary.passed} of {summary.planned} audits passed"
    if isinstance(record, SanitizeEvidence):
        found = record.summary
        told = f"{found.clean} of {found.planned} clean, {found.canaries_found} of {found.canaries} canaries found"
        return "sanitizers", found.verdict, told
    differing = sum(one.differing for one in record.checked)
    verdict: Verdict = "fail" if differing else "pass" if record.points and record.checked else "inconclusive"
    pairs, compared = sum(len(point.pairs) for point in record.points), sum(one.nbytes for one in record.checked)
    return (
        "bench",
        verdict,
        f"{pairs} pair{'' if pairs == 1 else 's'} timed, {differing:,} of {compared:,} bytes differ",
    )
