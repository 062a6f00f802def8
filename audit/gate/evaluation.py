"""What an evaluation stands on and gathers on its way, and the words that its conditions share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec

from audit.gate.coverage import Spoken
from audit.gate.policy import Policy
from audit.gate.verdict import Condition, Found, Standing
from audit.plan import Backend
from audit.project import Project
from audit.records.folder import REPORT
from audit.records.run import Audit, RunRecord
from audit.records.sanitize import Checked, SanitizeRecord, Suppression
from audit.records.verify import Verified
from audit.sanitize.suppressions import declared

_NAMED = 3

AnySpoken = Sequence[Spoken[RunRecord, Audit]] | Sequence[Spoken[SanitizeRecord, Checked]]


@dataclass
class Grounds:
    """`accepted` maps fingerprints of the baseline in force to their reasons; `today` decides what is expired.

    `found` and `sessions` gather what the rules have looked at.
    """

    project: Project
    policy: Policy
    evidence: Sequence[Verified]
    accepted: dict[str, str]
    today: date
    suppressions: tuple[Suppression, ...] = ()
    found: list[Found] = field(default_factory=list)
    sessions: dict[Path, SanitizeRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.suppressions = declared(self.project)

    def shown(self, path: Path) -> str:
        """Relative to the project, where it lies inside."""
        whole = path.resolve()
        root = self.project.root
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)

    def page(self, there: AnySpoken) -> str:
        """The report of the first of them."""
        return self.shown(there[0].by.path / REPORT) if there else ""

    def accepting(self, found: Sequence[Found]) -> list[Found]:
        """The findings, each with the reason for which the baseline accepts it."""
        return [
            msgspec.structs.replace(one, accepted=self.accepted.get(one.fingerprint, one.accepted)) for one in found
        ]

    def sources(self, name: str, device: Backend, there: AnySpoken) -> Condition:
        """Whether evidence is of today's sources; what was run on a host can be run again, so the policy's leave to be
        stale is for devices alone."""
        variants = {one.result.variant for one in there}
        changed = sorted({one.result.variant for one in there if not one.current})
        files = dict.fromkeys(what for one in there if not one.current for what in one.by.stale.told())
        stale: Standing = self.policy.stale if device == "cuda" else "inconclusive"
        return Condition(
            name=name,
            required="those of the project now",
            measured=f"{len(changed)} of {len(variants)} variants stale" if changed else "the same",
            verdict=stale if changed else "pass",
            detail=f"{', '.join(changed)}: {'; '.join(files)}; run them again" if changed else "",
            path=self.page(there),
        )


@dataclass
class Tally:
    """Results of one kind counted; names are those of a variant in a case."""

    good: int = 0
    accepted: int = 0
    failed: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def condition(self, name: str, good: str, failed: str, path: str) -> Condition:
        """All must be good; `failed` says in words what the others are. Nothing at all is inconclusive."""
        required = self.good + self.accepted + len(self.failed) + len(self.open) + len(self.missing)
        counts = ((self.good, good), (len(self.failed), "failed"), (len(self.open), "inconclusive"))
        measured = [
            f"{count} {what}" for count, what in (*counts, (len(self.missing), "missing")) if count or what == good
        ]
        if self.accepted:
            measured.append(f"{self.accepted} accepted by the baseline")
        told = ((failed, self.failed), ("inconclusive", self.open), ("no evidence of", self.missing))
        return Condition(
            name=name,
            required=f"{required} {good}",
            measured=", ".join(measured),
            verdict=self._standing(required),
            detail="; ".join(listed(what, names) for what, names in told if names),
            path=path,
        )

    def _standing(self, required: int) -> Standing:
        if self.failed:
            return "fail"
        if self.open or self.missing or not required:
            return "inconclusive"
        return "warn" if self.accepted else "pass"


def listed(what: str, names: Sequence[str]) -> str:
    """The first names, and how many more."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{what} {', '.join(names[:_NAMED])}{more}"
