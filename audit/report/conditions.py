"""The conditions of a run: each check over all audits, then coverage and vacuity. All must hold for a pass."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from audit.checks.catalogue import CATALOGUE
from audit.checks.difference import amount
from audit.checks.result import Figure, Result, Verdict, worst
from audit.records.run import ARGUMENTS_SINCE, Audit, RunRecord
from audit.report.tables import used
from audit.vacuity import unseen

State: TypeAlias = Verdict | Literal["absent"]
ORDER: dict[str, int] = {"fail": 0, "inconclusive": 1, "absent": 2, "pass": 3}


MEANINGS = {
    **{check.name: check.meaning for check in CATALOGUE},
    "coverage": "Everything that the plan names did run.",
    "vacuity": "Each wrong result that the tool put in place of a right one was caught by a check in some case.",
}
"""What it means that a condition holds; all bounds of `error`, say, share one sentence."""


class RunCondition(msgspec.Struct, frozen=True):
    """One thing that must hold. `measured <= limit` of the result that is furthest from holding, where it has figures.

    `absent` is a planned check without any result: it is no pass, and it is not counted.
    """

    name: str
    state: State
    outcome: str  # `8 of 37 audits`
    held: int = 0  # of `of` audits, or of what `outcome` names
    of: int = 0
    measured: str = ""
    limit: str = ""
    used: float | None = None  # the share of the limit, where one is measured
    amount: str = ""  # how much differs at most, over all results, where bytes are compared
    result: Result | None = None
    audit: Audit | None = None  # where that result stands


class Count(msgspec.Struct, frozen=True):
    """How many conditions there are, and in which state."""

    failed: int
    inconclusive: int
    total: int


def run_conditions(evidence: RunRecord) -> list[RunCondition]:
    """Every condition, those that do not hold first, each group in the order of the plan."""
    found = [*_checks(evidence), _coverage(evidence), *_captured(evidence), _vacuity(evidence), *_arguments(evidence)]
    return sorted(found, key=lambda condition: ORDER[condition.state])


def count_conditions(found: list[RunCondition]) -> Count:
    """The counts of the first sentence of a page."""
    states = [condition.state for condition in found if condition.state != "absent"]
    return Count(states.count("fail"), states.count("inconclusive"), len(states))


def _checks(evidence: RunRecord) -> list[RunCondition]:
    """One for each check and each bound or probe of it, in the plan's order."""
    results: dict[str, dict[str, list[tuple[Audit, Result]]]] = {check: {} for check in evidence.plan.checks}
    for audit in evidence.audits:
        for result in audit.results:
            base = result.check.partition(":")[0]
            results.setdefault(base, {}).setdefault(result.check, []).append((audit, result))
    found = []
    for base, named in results.items():
        found += [_condition(name, pairs) for name, pairs in named.items()]
        if not named:
            found.append(RunCondition(base, "absent", "no result: it applies to nothing in this plan, or did not run"))
    return found


def _condition(name: str, pairs: list[tuple[Audit, Result]]) -> RunCondition:
    verdicts: dict[tuple[str, str], list[Verdict]] = {}
    for audit, result in pairs:
        verdicts.setdefault((audit.case, audit.variant), []).append(result.verdict)
    held = sum(worst(mine) == "pass" for mine in verdicts.values())
    audit, result = min(pairs, key=lambda pair: _distance(pair[1]))
    return RunCondition(
        name,
        worst([result.verdict for _, result in pairs]),
        f"{held} of {len(verdicts)} {'probed' if name.startswith('probe:') else 'audits'}",
        held,
        len(verdicts),
        _text(result.measured),
        _text(result.limit),
        _used(result),
        amount([largest for _, result in pairs for largest in result.largest]),
        result,
        audit,
    )


def _coverage(evidence: RunRecord) -> RunCondition:
    planned = {(case.id, variant.label) for case in evidence.plan.cases for variant in evidence.plan.variants}
    ran = planned & {(audit.case, audit.variant) for audit in evidence.audits}
    return _count("coverage: planned audits", len(ran), len(planned), "of what was planned ran")


def _captured(evidence: RunRecord) -> list[RunCondition]:
    planned = {case.id for case in evidence.plan.cases if case.capture}
    ran = planned & {audit.case for audit in evidence.audits}
    return [_count("coverage: captures", len(ran), len(planned), "captured cases ran")] if planned else []


def _vacuity(evidence: RunRecord) -> RunCondition:
    asked = {e.mutation for e in evidence.exposures if e.applies or not evidence.plan.pruned}
    missed = unseen(evidence.exposures, pruned=evidence.plan.pruned)
    if not asked and all(variant.parent or variant.baseline_only for variant in evidence.plan.variants):
        return RunCondition("vacuity", "absent", "not asked: only the bytes of a parent judge here")
    if not asked:
        return RunCondition("vacuity", "inconclusive", "not asked: no variant without a parent passed")
    condition = _count("vacuity", len(asked) - len(missed), len(asked), "wrong results were caught")
    if not missed:
        return condition
    return msgspec.structs.replace(condition, outcome=f"no check catches {', '.join(missed)}")


def _arguments(evidence: RunRecord) -> list[RunCondition]:
    """Of a default plan, in a record that is new enough to say it."""
    if evidence.plan.pruned or evidence.schema < ARGUMENTS_SINCE:
        return []
    pairs = evidence.summary.indistinguishable
    if not pairs:
        return [RunCondition("launch arguments", "pass", "any two of one type differ in some case")]
    outcome = f"equal in every case, so that exchanging them changes nothing: {'; '.join(pairs)}"
    return [RunCondition("launch arguments", "inconclusive", outcome)]


def _count(name: str, held: int, of: int, noun: str) -> RunCondition:
    state: State = "pass" if held == of > 0 else "inconclusive"
    return RunCondition(name, state, f"{held} of {of} {noun}", held, of)


def _distance(result: Result) -> tuple[int, float]:
    """Sorts the result that is furthest from holding first."""
    share = _used(result)
    return ORDER[result.verdict], -(share if share is not None else 0.0)


def _used(result: Result) -> float | None:
    """None where nothing is measured against a limit, or where the two must be equal."""
    if result.measured is None or result.limit is None or result.check == "completion":
        return None
    return used(result.measured, result.limit)


def _text(figure: Figure | None) -> str:
    return "" if figure is None else figure.text
