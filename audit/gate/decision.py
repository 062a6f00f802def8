"""From evidence and a policy to a verdict, every condition listed. Nothing is run here and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import TypeVar

import msgspec

from audit import __version__
from audit.errors import CaptureError, PlanError
from audit.gate import baseline
from audit.gate.admission import admission_conditions
from audit.gate.audits import audit_conditions
from audit.gate.baseline import AcceptedFinding
from audit.gate.evaluation import Evaluation
from audit.gate.policy import AuditRule, Policy, SanitizeRule
from audit.gate.sanitizers import sanitizer_conditions, suppression_conditions
from audit.gate.verdict import SCHEMA, Condition, Gate, Standing, overall
from audit.project import Project
from audit.records import machine
from audit.records.verify import Verification

_NAMED = 3
_Rule = TypeVar("_Rule", AuditRule, SanitizeRule)


def decide(
    project: Project,
    name: str,
    policy: Policy,
    evidence: Sequence[Verification],
    accepted: Sequence[AcceptedFinding],
    *,
    started: str,
    today: date,
    baseline_file: str = "",
) -> Gate:
    """The verdict of a policy over evidence that was verified; `today` decides what is expired."""
    evaluation = Evaluation(project, policy, evidence, baseline.valid(accepted, today), today)
    conditions = [
        *(_record_condition(evaluation, one) for one in evidence),
        *admission_conditions(project, policy, evidence),
        *_rules(evaluation, policy.audits, "audits", audit_conditions),
        *_rules(evaluation, policy.sanitizers, "sanitizers", sanitizer_conditions),
        *_no_rules(policy),
        *suppression_conditions(evaluation),
    ]
    if accepted:
        whole = not any(condition.verdict == "inconclusive" for condition in conditions)
        conditions.append(baseline.condition(accepted, evaluation.found, today, baseline_file, whole=whole))
    return Gate(
        schema=SCHEMA,
        kind="gate",
        tool=__version__,
        policy=name,
        started=started,
        commit=machine.commit(project.root),
        verdict=overall(conditions),
        conditions=_numbered(conditions),
        found=tuple(dict.fromkeys(evaluation.found)),
        evidence=tuple(evaluation.relative(one.path) for one in evidence),
    )


def _rules(
    evaluation: Evaluation,
    rules: Sequence[_Rule],
    kind: str,
    conditions: Callable[[Evaluation, _Rule, str], Iterator[Condition]],
) -> Iterator[Condition]:
    """The conditions of each rule and shape. A plan that cannot be made (a capture is gone) is inconclusive."""
    for rule in rules:
        for shape in rule.shapes:
            try:
                yield from conditions(evaluation, rule, shape)
            except (PlanError, CaptureError) as error:
                name = f"{kind} {shape} on {rule.device}"
                yield Condition(name, "a plan that can be made", "none", "inconclusive", str(error))


def _no_rules(policy: Policy) -> Iterator[Condition]:
    if not any(rule.shapes for rule in (*policy.audits, *policy.sanitizers)):
        why = "the policy asks for no audit and no sanitizer; add a table [[...audits]] with the shapes to audit"
        yield Condition("rules", "at least 1", "0", "inconclusive", why, "pyproject.toml")


def _record_condition(evaluation: Evaluation, one: Verification) -> Condition:
    """A record: complete and unaltered, whatever it says. That it is stale counts where it is used."""
    flaws = [flaw for flaw in one.flaws if flaw.kind != "stale"]
    verdict: Standing = one.verdict if flaws else "pass"
    return Condition(
        name=f"evidence {one.path.name}",
        required="whole and unaltered",
        measured=", ".join(dict.fromkeys(flaw.kind for flaw in flaws)) or "whole and unaltered",
        verdict=verdict,
        detail="; ".join(flaw.what for flaw in flaws[:_NAMED]),
        path=evaluation.relative(one.path),
    )


def _numbered(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Each under a name of its own, where two rules ask for the same shape on the same device."""
    seen: dict[str, int] = {}
    named = []
    for one in conditions:
        seen[one.name] = nth = seen.get(one.name, 0) + 1
        named.append(one if nth == 1 else msgspec.structs.replace(one, name=f"{one.name} ({nth})"))
    return tuple(named)
