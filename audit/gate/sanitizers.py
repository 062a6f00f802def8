"""The conditions of one rule about sanitizers, for each tool: clean, canaries found, launches seen, today's sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from audit.gate import coverage
from audit.gate.coverage import ToolWitness
from audit.gate.evaluation import Evaluation
from audit.gate.findings import of_session
from audit.gate.policy import SanitizeRule
from audit.gate.rule_conditions import ResultCount, State, current_sources, enough_cases, page_of, witnesses_of
from audit.gate.verdict import Condition, GateFinding
from audit.records.sanitize import SanitizeRecord, Tool, complaints
from audit.sanitize import suppressions


def sanitizer_conditions(evaluation: Evaluation, rule: SanitizeRule, shape: str) -> Iterator[Condition]:
    """What a rule asks of one shape. Raises PlanError and CaptureError where its plan cannot be made."""
    plan = rule.plan(evaluation.project, shape)
    about = f"{shape} on {rule.device}"
    # The cases that the project declares for its sanitizers, as the rule narrows them.
    yield enough_cases(f"cases of sanitizers {about}", rule.minimum.cases, len(plan.cases), "pyproject.toml")
    for tool in plan.tools:
        checks = coverage.checks(plan, tool, evaluation.evidence)
        witnesses = witnesses_of(checks)
        sessions = {witness.by.path: witness.record for witness in witnesses}
        evaluation.sessions |= sessions
        path = page_of(evaluation, witnesses)
        count = ResultCount.of(checks, lambda witness: _judge(evaluation, witness))
        yield count.condition(f"{tool} {about}", "clean", "findings in", rule.device, path)
        if witnesses:
            yield _canaries(f"canaries {tool} {about}", tool, rule, sessions, path)
            yield _launches(f"launches {tool} {about}", witnesses, path)
            yield current_sources(evaluation, f"sources {tool} {about}", rule.device, witnesses)


def suppression_conditions(evaluation: Evaluation) -> Iterator[Condition]:
    """Every suppression of the project and of the sessions that the rules used: in force, and in use where all was run.
    Call it after the rules."""
    if not evaluation.suppressions and not any(record.suppressions for record in evaluation.sessions.values()):
        return
    sentences = dict.fromkeys(complaints(evaluation.suppressions, evaluation.today, ()))
    for record in evaluation.sessions.values():
        tools = [tool.tool for tool in record.tools]
        pruned = record.plan.pruned
        sentences |= dict.fromkeys(complaints(record.suppressions, evaluation.today, tools, narrowed=pruned))
    yield Condition(
        name="suppressions",
        required="each in force and in use",
        measured=f"{len(evaluation.suppressions)} declared, {len(sentences)} complaints",
        verdict="fail" if sentences else "pass",
        detail="; ".join(sentences),
        path="pyproject.toml",
    )


def _judge(evaluation: Evaluation, witness: ToolWitness) -> tuple[State, str]:
    suppressed, others = _findings(evaluation, witness)
    evaluation.found += (*suppressed, *others)
    result = witness.result
    uncompiled = result.verdict == "fail" and result.build is None
    if uncompiled or any(not found.accepted for found in others):
        return "failed", ""
    if result.verdict == "inconclusive":
        return "inconclusive", result.reason
    return ("accepted" if others else "good"), ""


def _findings(evaluation: Evaluation, witness: ToolWitness) -> tuple[list[GateFinding], list[GateFinding]]:
    """What was found, those that a suppression accepts apart; suppressions are those of the project today."""
    rules = [rule for rule in evaluation.suppressions if rule.device in ("", witness.record.plan.backend)]
    judged = suppressions.apply(rules, witness.result.findings, evaluation.today)
    reasons = {rule.name: rule.reason for rule in evaluation.suppressions}
    evidence = evaluation.relative(witness.by.path)
    suppressed, others = [], []
    for name in dict.fromkeys(finding.suppressed for finding in judged):
        same = [finding for finding in judged if finding.suppressed == name]
        found = of_session(witness.result, same, witness.record.builds, evaluation.project.root, evidence)
        if name:
            suppressed += [msgspec.structs.replace(each, accepted=reasons[name]) for each in found]
        else:
            others += evaluation.accept(found)
    return suppressed, others


def _canaries(
    name: str, tool: Tool, rule: SanitizeRule, sessions: Mapping[Path, SanitizeRecord], path: str
) -> Condition:
    """Each session's own: those of one prove nothing of another."""
    own = [canary for record in sessions.values() for canary in record.canaries if canary.tool == tool]
    missed = [canary for canary in own if not (canary.found and canary.twin_clean)]
    least = max(rule.minimum.canaries, 1)
    counts = {one.name: sum(canary.tool == tool for canary in record.canaries) for one, record in sessions.items()}
    sentences = [
        *(f"{one.name}: {one.detail}" for one in missed),
        *(f"{folder}: {count or 'none'} ran" for folder, count in counts.items() if count < least),
    ]
    return Condition(
        name=name,
        required=f"all {len(own)} found, at least {least} a session",
        measured=str(len(own) - len(missed)),
        verdict="pass" if own and not sentences else "inconclusive",
        detail="; ".join(sentences),
        path=path,
    )


def _launches(name: str, witnesses: Sequence[ToolWitness], path: str) -> Condition:
    seen = sum(witness.result.launches for witness in witnesses)
    planned = sum(witness.result.planned_launches for witness in witnesses)
    return Condition(
        name=name,
        required=f"{planned} seen",
        measured=str(seen),
        verdict="pass" if seen == planned > 0 else "inconclusive",
        path=path,
    )
