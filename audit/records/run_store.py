"""The evidence of an audit on disk: a folder with plan.json, evidence.json, report.html and SHA256SUMS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from audit.plan import Plan
from audit.records import folder, packing
from audit.records.folder import REPORT
from audit.records.run import OLDER, SCHEMA, Evidence

__all__ = ["EVIDENCE", "PLAN", "REPORT", "Draft", "decode", "load"]

EVIDENCE, PLAN = "evidence.json", "plan.json"


class Draft(folder.Partial):
    """An audit's folder while it runs: the plan stands in it before anything runs."""

    def __init__(self, runs: Path, shape: str, plan: Plan) -> None:
        super().__init__(runs, shape, {PLAN: folder.encode(plan)})

    def finish(self, evidence: Evidence, attachments: Mapping[str, bytes]) -> Path:
        """Make it evidence; the folder of the whole evidence."""
        return self.seal({EVIDENCE: folder.encode(evidence), **attachments})


def load(path: Path) -> Evidence:
    """Read whole evidence from its folder or its evidence.json; EvidenceError says what is wrong with it."""
    home = path.parent if packing.plain(path.name) == EVIDENCE else path
    found = folder.verified(home, (EVIDENCE, PLAN))
    folder.require(found, (EVIDENCE, PLAN), home)
    return decode(found[EVIDENCE], home / EVIDENCE)


def decode(raw: bytes, where: Path) -> Evidence:
    """Evidence from its JSON, the schema version checked first."""
    return folder.decode(raw, where, Evidence, SCHEMA, *OLDER)
