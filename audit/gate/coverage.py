"""Which evidence speaks for what a plan asks: of all that has a result for a case and a variant, the newest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from audit.plan import Plan
from audit.records.run import Audit, RunRecord
from audit.records.sanitize import Checked, SanitizePlan, SanitizeRecord, Tool
from audit.records.verify import Verified

_Record = TypeVar("_Record", RunRecord, SanitizeRecord)
_Result = TypeVar("_Result", Audit, Checked)


@dataclass(frozen=True)
class Spoken(Generic[_Record, _Result]):
    """One result with the evidence that it comes from."""

    by: Verified
    record: _Record
    result: _Result
    capture: str | None

    @property
    def current(self) -> bool:
        """Whether its sources, and its capture if it has one, are still those of the project."""
        return self.result.build not in self.by.stale.builds and self.capture not in self.by.stale.captures


Pair = tuple[str, str]
"""A case's id and a variant's name."""


def audits(plan: Plan, evidence: Iterable[Verified]) -> dict[Pair, Spoken[RunRecord, Audit] | None]:
    """Every audit that the plan asks for, None where nothing speaks for it.

    A case that ran its first step alone does not speak for all steps, nor one of another architecture.
    """
    wanted = {case.id: case for case in plan.cases}
    found: dict[Pair, Spoken[RunRecord, Audit] | None] = {
        (case.id, variant.label): None for case in plan.cases for variant in plan.variants
    }
    for verified, record in _newest_first(evidence, RunRecord):
        if (record.plan.operator, record.plan.backend) != (plan.operator, plan.backend):
            continue
        ran = {one.case.id: one.case for one in record.cases}
        for audit in record.audits:
            pair = (audit.case, audit.variant)
            if pair not in found or found[pair] is not None or audit.case not in ran:
                continue
            case, want = ran[audit.case], wanted[audit.case]
            if case.arch == want.arch and (want.first_step_only or not case.first_step_only):
                found[pair] = Spoken(verified, record, audit, case.capture)
    return found


def checks(
    plan: SanitizePlan, tool: Tool, evidence: Iterable[Verified]
) -> dict[Pair, Spoken[SanitizeRecord, Checked] | None]:
    """Every run of one tool that the plan asks for, None where nothing speaks for it."""
    wanted = {case.id: case for case in plan.cases}
    found: dict[Pair, Spoken[SanitizeRecord, Checked] | None] = {
        (case.id, variant): None for case in plan.cases for variant in plan.variants
    }
    for verified, record in _newest_first(evidence, SanitizeRecord):
        if (record.plan.operator, record.plan.backend) != (plan.operator, plan.backend):
            continue
        ran = {case.id: case for case in record.plan.cases}
        for one in record.checked:
            pair = (one.case, one.variant)
            if one.tool != tool or pair not in found or found[pair] is not None or one.case not in ran:
                continue
            if wanted[one.case].first_step_only or not ran[one.case].first_step_only:
                found[pair] = Spoken(verified, record, one, ran[one.case].capture)
    return found


def _newest_first(evidence: Iterable[Verified], kind: type[_Record]) -> list[tuple[Verified, _Record]]:
    sound = [(one, one.record) for one in evidence if one.sound and isinstance(one.record, kind)]
    return sorted(sound, key=lambda pair: pair[1].started, reverse=True)
