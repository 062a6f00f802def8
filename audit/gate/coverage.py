"""Which evidence speaks for what a plan asks: of all that has a result for a case and a variant, the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from audit.plan import Plan
from audit.records.run import Audit, RunRecord
from audit.records.sanitize import SanitizePlan, SanitizeRecord, Tool, ToolCheck
from audit.records.verify import Verification
from audit.spec import Case

_Record = TypeVar("_Record", RunRecord, SanitizeRecord)
_Result = TypeVar("_Result", Audit, ToolCheck)


@dataclass(frozen=True)
class Witness(Generic[_Record, _Result]):
    """One result, with the case that it ran and the evidence that it comes from."""

    by: Verification
    record: _Record
    result: _Result
    case: Case

    @property
    def current(self) -> bool:
        """Whether its sources, and its capture if it has one, are still those of the project."""
        return self.result.build not in self.by.stale.builds and self.case.capture not in self.by.stale.captures


AuditWitness: TypeAlias = Witness[RunRecord, Audit]
ToolWitness: TypeAlias = Witness[SanitizeRecord, ToolCheck]
AnyWitness = TypeVar("AnyWitness", AuditWitness, ToolWitness)

Pair: TypeAlias = tuple[str, str]
"""A case's id and a variant's name."""
Coverage: TypeAlias = Mapping[Pair, AnyWitness | None]
"""What speaks for each pair that a plan asks for, None where nothing does."""


def audits(plan: Plan, evidence: Iterable[Verification]) -> Coverage[AuditWitness]:
    """The coverage of a plan of audits.

    A case that ran its first step alone does not speak for all steps, nor one of another architecture.
    """
    wanted = {case.id: case for case in plan.cases}

    def witnesses() -> Iterator[AuditWitness]:
        for verified, record in _newest_first(evidence, RunRecord, plan):
            ran = {one.case.id: one.case for one in record.cases}
            yield from (Witness(verified, record, one, ran[one.case]) for one in record.audits if one.case in ran)

    def speaks(witness: AuditWitness) -> bool:
        want = wanted[witness.case.id]
        return witness.case.arch == want.arch and _has_steps(want, witness.case)

    return _cover([(case.id, variant.label) for case in plan.cases for variant in plan.variants], witnesses(), speaks)


def checks(plan: SanitizePlan, tool: Tool, evidence: Iterable[Verification]) -> Coverage[ToolWitness]:
    """The coverage of one tool in a plan of sanitizers."""
    wanted = {case.id: case for case in plan.cases}

    def witnesses() -> Iterator[ToolWitness]:
        for verified, record in _newest_first(evidence, SanitizeRecord, plan):
            ran = {case.id: case for case in record.plan.cases}
            mine = (one for one in record.checked if one.tool == tool and one.case in ran)
            yield from (Witness(verified, record, one, ran[one.case]) for one in mine)

    return _cover(
        [(case.id, variant) for case in plan.cases for variant in plan.variants],
        witnesses(),
        lambda witness: _has_steps(wanted[witness.case.id], witness.case),
    )


def _has_steps(wanted: Case, ran: Case) -> bool:
    return wanted.first_step_only or not ran.first_step_only


def _cover(
    pairs: Iterable[Pair], witnesses: Iterable[AnyWitness], speaks: Callable[[AnyWitness], bool]
) -> Coverage[AnyWitness]:
    """For each pair the first witness that speaks for it."""
    found: dict[Pair, AnyWitness | None] = dict.fromkeys(pairs)
    for witness in witnesses:
        pair = (witness.result.case, witness.result.variant)
        if pair in found and found[pair] is None and speaks(witness):
            found[pair] = witness
    return found


def _newest_first(
    evidence: Iterable[Verification], kind: type[_Record], plan: Plan | SanitizePlan
) -> list[tuple[Verification, _Record]]:
    """Records of one kind that may be believed, of the plan's operator and backend."""
    sound = [(one, one.record) for one in evidence if one.sound and isinstance(one.record, kind)]
    same = [
        (one, record)
        for one, record in sound
        if (record.plan.operator, record.plan.backend) == (plan.operator, plan.backend)
    ]
    return sorted(same, key=lambda pair: pair[1].started, reverse=True)
