"""The evidence of a session of sanitizers on disk: a folder with plan.json, sanitize.json, report.html, SHA256SUMS."""

from __future__ import annotations

from pathlib import Path

from audit.records import folder, packing
from audit.records.folder import REPORT
from audit.records.sanitize import SCHEMA, SanitizeEvidence, SanitizePlan

SANITIZE, PLAN = "sanitize.json", "plan.json"


class Draft(folder.Partial):
    """A session's folder while it runs: the plan stands in it before anything runs."""

    def __init__(self, runs: Path, plan: SanitizePlan) -> None:
        super().__init__(runs, f"sanitize-{plan.shape}", {PLAN: folder.encode(plan)})

    def finish(self, evidence: SanitizeEvidence, page: str) -> Path:
        """Make it evidence; the folder of the whole evidence."""
        return self.seal({SANITIZE: folder.encode(evidence), REPORT: page.encode()})


def load(path: Path) -> SanitizeEvidence:
    """Read a whole session from its folder or its sanitize.json; EvidenceError says what is wrong with it."""
    home = path.parent if packing.plain(path.name) == SANITIZE else path
    found = folder.verified(home, (SANITIZE, PLAN))
    folder.require(found, (SANITIZE, PLAN), home)
    return folder.decode(found[SANITIZE], home / SANITIZE, SanitizeEvidence, SCHEMA)
