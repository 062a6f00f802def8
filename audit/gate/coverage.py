"""Which evidence speaks for what a plan asks: of all that has a result for a case and a variant, the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from audit.plan import Plan, ancestors
from audit.records.completeness import missing_results
from audit.records.run import Audit, CaseRecord, RunRecord
from audit.records.sanitize import SanitizePlan, SanitizeRecord, Tool, ToolCheck
from audit.records.verify import Verification
from audit.relations import Bitwise, relation_text
from audit.spec import Case, Operator

_Record = TypeVar("_Record", RunRecord, SanitizeRecord)
_Result = TypeVar("_Result", Audit, ToolCheck)


@dataclass(frozen=True)
class Witness(Generic[_Record, _Result]):
    """One result, with the case that it ran and the evidence that it comes from."""

    by: Verification
    record: _Record
    result: _Result
    case: Case
    lacks: tuple[str, ...] = ()  # of the results and comparisons that the declaration asks for

    @property
    def current(self) -> bool:
        """Whether its sources, and its capture if it has one, are still those of the project."""
        stale = self.by.stale
        changed = stale.closure or self.result.build in stale.builds or self.case.capture in stale.captures
        return not changed


AuditWitness: TypeAlias = Witness[RunRecord, Audit]
ToolWitness: TypeAlias = Witness[SanitizeRecord, ToolCheck]
AnyWitness = TypeVar("AnyWitness", AuditWitness, ToolWitness)

Pair: TypeAlias = tuple[str, str]
"""A case's id and a variant's name."""
Coverage: TypeAlias = Mapping[Pair, AnyWitness | None]
"""What speaks for each pair that a plan asks for, None where nothing does."""


def audits(plan: Plan, operator: Operator, evidence: Iterable[Verification]) -> Coverage[AuditWitness]:
    """The coverage of a plan of audits; what runs as a baseline only is not asked for.

    A case that ran its first step alone does not speak for all steps, nor one of another architecture. Of several
    records the best speaks: one that holds every result and comparison that is asked for, of today's sources, and the
    newest of these.
    """
    wanted = {case.id: case for case in plan.cases}
    declared = {variant.name: relation_text(variant.relation) for variant in operator.variants}
    compared = {variant.name: set(ancestors(operator, variant)) for variant in operator.variants}

    def witnesses() -> Iterator[AuditWitness]:
        for verified, record in _newest_first(evidence, RunRecord, plan):
            ran = {one.case.id: one for one in record.cases}
            for audit in record.audits:
                if audit.case in ran:
                    lacks = tuple(_lacking(record, audit, ran[audit.case], compared, declared))
                    yield Witness(verified, record, audit, ran[audit.case].case, lacks)

    def speaks(witness: AuditWitness) -> bool:
        want = wanted[witness.case.id]
        return witness.case.arch == want.arch and _has_steps(want, witness.case)

    asked = [variant.label for variant in plan.variants if not variant.baseline_only]
    return _cover([(case.id, name) for case in plan.cases for name in asked], witnesses(), speaks)


def _lacking(
    record: RunRecord, audit: Audit, case: CaseRecord, compared: Mapping[str, set[str]], declared: Mapping[str, str]
) -> Iterator[str]:
    """What an audit lacks of all that the declaration asks for today: comparisons with an ancestor, and results."""
    planned = next((variant for variant in record.plan.variants if variant.label == audit.variant), None)
    known = compared.get(audit.variant, set())
    if planned is None or (known and planned.parent is None):
        yield "a comparison with its parent"
    elif known and planned.parent not in known:
        yield f"a comparison with an ancestor: it was compared with {planned.parent}"
    elif known and planned.relation not in (relation_text(Bitwise()), asked := declared[audit.variant]):
        yield f"a comparison by the relation {asked}: it was compared by {planned.relation}"
    yield from missing_results(record, audit, case)


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
    """For each pair the best witness that speaks for it; of equal ones the first, since the newest come first."""
    found: dict[Pair, AnyWitness | None] = dict.fromkeys(pairs)
    for witness in witnesses:
        pair = (witness.result.case, witness.result.variant)
        if pair not in found or not speaks(witness):
            continue
        best = found[pair]
        if best is None or _rank(witness) > _rank(best):
            found[pair] = witness
    return found


def _rank(witness: Witness[Any, Any]) -> tuple[bool, bool]:
    return not witness.lacks, witness.current


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
