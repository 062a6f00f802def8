"""One evaluation of a policy: its inputs, and the findings and sessions that its rules gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec

from audit.gate.baseline import AcceptedFinding
from audit.gate.policy import Policy
from audit.gate.verdict import GateFinding
from audit.project import Project
from audit.records.sanitize import SanitizeRecord, Suppression
from audit.records.verify import Verification
from audit.sanitize.suppressions import declared


@dataclass
class Evaluation:
    """`accepted` are the entries of the baseline in force; `today` decides what is expired.

    The rules add the findings and the sessions that they use to `found` and `sessions`.
    """

    project: Project
    policy: Policy
    evidence: Sequence[Verification]
    accepted: Sequence[AcceptedFinding]
    today: date
    suppressions: tuple[Suppression, ...] = ()
    found: list[GateFinding] = field(default_factory=list)
    sessions: dict[Path, SanitizeRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.suppressions = declared(self.project)

    def relative(self, path: Path) -> str:
        """A path relative to the project, where it lies inside."""
        whole = path.resolve()
        root = self.project.root
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)

    def accept(self, found: Sequence[GateFinding]) -> list[GateFinding]:
        """The findings, each with the reason for which the baseline accepts it."""
        reasons = (next((entry.reason for entry in self.accepted if entry.matches(one)), one.accepted) for one in found)
        return [msgspec.structs.replace(one, accepted=reason) for one, reason in zip(found, reasons, strict=True)]
