"""What did not pass in a run, in the order in which it is told."""

from __future__ import annotations

import msgspec

from audit.checks.result import Result, Verdict
from audit.records.run import Audit, Evidence


class Finding(msgspec.Struct, frozen=True):
    """A check that did not pass for one variant in one case: its first result, and every step where it did so."""

    audit: Audit
    result: Result
    steps: tuple[str, ...]

    @property
    def place(self) -> str:
        """Variant, case and steps in words."""
        steps = f", {'steps' if len(self.steps) > 1 else 'step'} {', '.join(self.steps)}" if self.steps else ""
        return f"{self.audit.variant}, {self.audit.case}{steps}"


def findings(evidence: Evidence) -> list[Finding]:
    """All findings, failures before what is inconclusive."""
    found: dict[tuple[str, str, str, Verdict], list[tuple[Audit, Result]]] = {}
    for audit in evidence.audits:
        for result in audit.results:
            if result.verdict != "pass":
                key = (audit.case, audit.variant, result.check, result.verdict)
                found.setdefault(key, []).append((audit, result))
    told = [Finding(*same[0], tuple(result.step for _, result in same if result.step)) for same in found.values()]
    return sorted(told, key=lambda finding: finding.result.verdict != "fail")
