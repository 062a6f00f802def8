"""The conditions of one rule about audits: passed, enough cases and captures, checks that could fail, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audit.gate import coverage
from audit.gate.coverage import AuditWitness, Coverage
from audit.gate.evaluation import Evaluation
from audit.gate.findings import of_audit
from audit.gate.policy import AuditRule
from audit.gate.rule_conditions import (
    ResultCount,
    State,
    current_sources,
    enough_cases,
    first_names,
    page_of,
    witnesses_of,
)
from audit.gate.verdict import Condition
from audit.plan import Plan
from audit.vacuity import unseen


def audit_conditions(evaluation: Evaluation, rule: AuditRule, shape: str) -> Iterator[Condition]:
    """What a rule asks of one shape. Raises PlanError and CaptureError where its plan cannot be made."""
    plan = rule.plan(evaluation.project, shape)
    about = f"{shape} on {rule.device}"
    operator = evaluation.project.operators[plan.operator]
    audits = coverage.audits(plan, operator, evaluation.evidence)
    witnesses = witnesses_of(audits)
    path = page_of(evaluation, witnesses)
    count = ResultCount.of(audits, lambda witness: _judge(evaluation, witness))
    yield count.condition(f"audits {about}", "passed", "failed", rule.device, path)
    cases = {witness.result.case for witness in witnesses}
    yield enough_cases(f"cases {about}", rule.minimum.cases, len(cases), path)
    yield from _captures(about, rule, plan, audits, path)
    yield _mutations(about, rule, plan, witnesses, path)
    yield from _arguments(about, plan, witnesses, path)
    if witnesses:
        yield current_sources(evaluation, f"sources {about}", rule.device, witnesses)


def _judge(evaluation: Evaluation, witness: AuditWitness) -> tuple[State, str]:
    found = evaluation.accept(of_audit(witness.result, witness.record.plan, evaluation.relative(witness.by.path)))
    evaluation.found += found
    if witness.result.verdict == "pass":
        return ("inconclusive", f"lacks {'; '.join(witness.lacks)}") if witness.lacks else ("good", "")
    if found and all(one.accepted for one in found):
        return "accepted", ""
    return ("failed" if witness.result.verdict == "fail" else "inconclusive"), ""


def _captures(
    about: str, rule: AuditRule, plan: Plan, audits: Coverage[AuditWitness], path: str
) -> Iterator[Condition]:
    captures = {case.id: case.capture for case in plan.cases if case.capture}
    if not captures and not rule.minimum.captures:
        return
    uncovered = {case for (case, _), witness in audits.items() if witness is None}
    missing = [capture for case, capture in captures.items() if case in uncovered]
    covered, required = len(captures) - len(missing), max(len(captures), rule.minimum.captures)
    yield Condition(
        name=f"captures {about}",
        required=f"{required} layers x ranks",
        measured=str(covered),
        verdict="pass" if covered >= required else "inconclusive",
        detail=first_names("no evidence of", missing) if missing else "",
        path=path,
    )


def _mutations(about: str, rule: AuditRule, plan: Plan, witnesses: Sequence[AuditWitness], path: str) -> Condition:
    """Whether the checks of these cases could have failed."""
    cases = {case.id for case in plan.cases}
    records = {witness.by.path: witness.record for witness in witnesses}
    exposures = [one for record in records.values() for one in record.exposures if one.case in cases]
    caught = {one.mutation for one in exposures if one.caught_by}
    missed = unseen(exposures, pruned=plan.pruned)
    enough = not missed and len(caught) >= rule.minimum.mutations
    return Condition(
        name=f"mutations {about}",
        required=f"all, at least {rule.minimum.mutations}, distinguished from the right result",
        measured=f"{len(caught)} of {len(caught) + len(missed)}",
        verdict="pass" if enough else "inconclusive",
        detail=f"no check tells a right result from {', '.join(missed)}" if missed else "",
        path=path,
    )


def _arguments(about: str, plan: Plan, witnesses: Sequence[AuditWitness], path: str) -> Iterator[Condition]:
    """The launch arguments that the default plan of a record cannot tell apart, if there are any."""
    summaries = [witness.record.summary for witness in witnesses if witness.record.plan.shape == plan.shape]
    pairs = dict.fromkeys(pair for summary in summaries for pair in summary.indistinguishable)
    if pairs:
        yield Condition(
            name=f"arguments {about}",
            required="any two of one type differ in some case",
            measured=f"{len(pairs)} pairs are equal in every case",
            verdict="inconclusive",
            detail="; ".join(pairs),
            path=path,
        )
