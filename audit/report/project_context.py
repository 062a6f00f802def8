"""What a project knows beside one run of an operator: closed variants, sessions of sanitizers, kept failures."""

from __future__ import annotations

from pathlib import Path

import msgspec

from audit import foreign
from audit.errors import EvidenceError
from audit.foreign import ForeignError
from audit.plan import Backend
from audit.project import Project
from audit.records import folder, packing, sanitize
from audit.records.kinds import KINDS, kind_of
from audit.records.sanitize import SanitizeRecord
from audit.records.verify import Verification, find_records, verify
from audit.report.index import IndexEntry, entry_of


class ClosedVariant(msgspec.Struct, frozen=True):
    """A variant that runs only when it is named: why, and what shows it, as paths of the project."""

    name: str
    why: str
    evidence: tuple[str, ...]


class RetainedFailure(msgspec.Struct, frozen=True):
    """A retained record that failed, is inconclusive or cannot be read, and the first thing that is wrong."""

    entry: IndexEntry
    problem: str


class RetainedSession(msgspec.Struct, frozen=True):
    """A retained session of sanitizers: how many of its canaries were found, with their clean twins passed."""

    entry: IndexEntry
    backend: Backend
    canaries: int
    found: int


class ProjectContext(msgspec.Struct, frozen=True):
    """`sessions` and `failures` are of any shape of the operator, the newest first."""

    closed: tuple[ClosedVariant, ...] = ()
    sessions: tuple[RetainedSession, ...] = ()
    failures: tuple[RetainedFailure, ...] = ()


def project_context(project: Project, operator: str) -> ProjectContext:
    """What the project says of one of its operators now; nothing where it has no such operator any more."""
    declared = project.operators.get(operator)
    closed = [variant for variant in declared.variants if variant.status == "closed"] if declared else []
    reports = project.reports
    homes = [home for home in find_records(reports) if home != reports] if reports.is_dir() else []
    looked = [verify(home, project) for home in homes if _matters(home, operator)]
    listed = [(one, entry_of(one, project.root, project.root)) for one in looked]
    listed.sort(key=lambda pair: pair[1].started, reverse=True)
    return ProjectContext(
        closed=tuple(ClosedVariant(variant.name, variant.why, variant.evidence) for variant in closed),
        sessions=tuple(
            RetainedSession(entry, one.record.plan.backend, summary.canaries, summary.canaries_found)
            for one, entry in listed
            if one.sound and isinstance(one.record, SanitizeRecord) and (summary := one.record.summary)
        ),
        failures=tuple(RetainedFailure(entry, _problem(one)) for one, entry in listed if entry.verdict != "pass"),
    )


class _PlanGlance(msgspec.Struct, frozen=True):
    operator: str = ""


class _SummaryGlance(msgspec.Struct, frozen=True):
    verdict: str = ""


class _RecordGlance(msgspec.Struct, frozen=True):
    """The little that tells whether a record is worth reading whole; a bench has neither plan nor summary."""

    operator: str = ""
    plan: _PlanGlance = _PlanGlance()
    summary: _SummaryGlance = _SummaryGlance()


def _matters(home: Path, operator: str) -> bool:
    """Whether evidence is a session of the operator, or may be a failure; one that cannot be read may be of any."""
    for kind in KINDS:
        if packing.lies(home, kind.file):
            try:
                seen = foreign.decode(packing.read_unpacked(home, kind.file), _RecordGlance)
            except (ForeignError, EvidenceError):
                return True
            ours = operator in (seen.operator, seen.plan.operator)
            return ours and (kind is sanitize.KIND or seen.summary.verdict != "pass")
    return (home / folder.SUMS).is_file()


def _problem(one: Verification) -> str:
    record = one.record
    if record is None or not one.sound:
        return next((flaw.what for flaw in one.flaws if flaw.kind != "stale"), "")
    return kind_of(record).headline(record).problem
