"""The conditions of one rule about audits: passed, enough cases and captures, checks that could fail, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from audit.errors import CaptureError, PlanError
from audit.gate import coverage
from audit.gate.coverage import Pair, Spoken
from audit.gate.evaluation import Grounds, Tally, listed
from audit.gate.findings import of_audit
from audit.gate.policy import AuditRule
from audit.gate.verdict import Condition
from audit.plan import Plan
from audit.records.run import Audit, RunRecord
from audit.vacuity import unseen


def conditions(grounds: Grounds, rule: AuditRule, shape: str) -> Iterator[Condition]:
    """What a rule asks of one shape. A plan that cannot be made (a capture is gone) leaves all of it inconclusive."""
    about = f"{shape} on {rule.device}"
    try:
        plan = rule.plan(grounds.project, shape)
    except (PlanError, CaptureError) as error:
        yield Condition(f"audits {about}", "a plan that can be made", "none", "inconclusive", str(error))
        return
    spoken = coverage.audits(plan, grounds.evidence)
    there = [one for one in spoken.values() if one is not None]
    path = grounds.page(there)
    yield _tally(grounds, spoken).condition(f"audits {about}", "passed", "failed", path)
    yield _cases(about, rule, len({one.result.case for one in there}), path)
    yield from _captures(about, rule, plan, spoken, path)
    yield _mutations(about, rule, plan, there, path)
    if there:
        yield grounds.sources(f"sources {about}", rule.device, there)


def _tally(grounds: Grounds, spoken: Mapping[Pair, Spoken[RunRecord, Audit] | None]) -> Tally:
    tally = Tally()
    for (case, variant), one in spoken.items():
        where = f"{variant} in {case}"
        if one is None:
            tally.missing.append(where)
            continue
        told = grounds.accepting(of_audit(one.result, one.record.plan, grounds.shown(one.by.path)))
        grounds.found += told
        if one.result.verdict == "pass":
            tally.good += 1
        elif told and all(found.accepted for found in told):
            tally.accepted += 1
        else:
            (tally.failed if one.result.verdict == "fail" else tally.open).append(where)
    return tally


def _cases(about: str, rule: AuditRule, measured: int, path: str) -> Condition:
    least = max(rule.minimum.cases, 1)
    return Condition(
        name=f"cases {about}",
        required=f"at least {least}",
        measured=str(measured),
        verdict="pass" if measured >= least else "inconclusive",
        path=path,
    )


def _captures(
    about: str, rule: AuditRule, plan: Plan, spoken: Mapping[Pair, Spoken[RunRecord, Audit] | None], path: str
) -> Iterator[Condition]:
    wanted = {case.id: case.capture for case in plan.cases if case.capture}
    if not wanted and not rule.minimum.captures:
        return
    lacking = {case for (case, _), one in spoken.items() if one is None}
    missing = [capture for case, capture in wanted.items() if case in lacking]
    covered, required = len(wanted) - len(missing), max(len(wanted), rule.minimum.captures)
    yield Condition(
        name=f"captures {about}",
        required=f"{required} layers x ranks",
        measured=str(covered),
        verdict="pass" if covered >= required else "inconclusive",
        detail=listed("no evidence of", missing) if missing else "",
        path=path,
    )


def _mutations(
    about: str, rule: AuditRule, plan: Plan, there: Sequence[Spoken[RunRecord, Audit]], path: str
) -> Condition:
    """Could the checks of these cases have failed?"""
    cases = {case.id for case in plan.cases}
    records = {one.by.path: one.record for one in there}
    exposures = [one for record in records.values() for one in record.exposures if one.case in cases]
    caught = {one.mutation for one in exposures if one.caught_by}
    missed = unseen(exposures, pruned=plan.pruned)
    enough = not missed and len(caught) >= rule.minimum.mutations
    return Condition(
        name=f"mutations {about}",
        required=f"all, at least {rule.minimum.mutations}, told from the right result",
        measured=f"{len(caught)} of {len(caught) + len(missed)}",
        verdict="pass" if enough else "inconclusive",
        detail=f"no check tells a right result from {', '.join(missed)}" if missed else "",
        path=path,
    )
