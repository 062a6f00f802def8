"""The conditions of one rule about sanitizers, for each tool: clean, canaries found, launches seen, today's sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from audit.errors import CaptureError, PlanError
from audit.gate import coverage
from audit.gate.coverage import Pair, Spoken
from audit.gate.evaluation import Grounds, Tally
from audit.gate.findings import of_session
from audit.gate.policy import SanitizeRule
from audit.gate.verdict import Condition, Found
from audit.records.sanitize import Checked, SanitizeRecord, Tool, complaints
from audit.sanitize import suppressions


def conditions(grounds: Grounds, rule: SanitizeRule, shape: str) -> Iterator[Condition]:
    """What a rule asks of one shape. A plan that cannot be made leaves all of it inconclusive."""
    about = f"{shape} on {rule.device}"
    try:
        plan = rule.plan(grounds.project, shape)
    except (PlanError, CaptureError) as error:
        yield Condition(f"sanitizers {about}", "a plan that can be made", "none", "inconclusive", str(error))
        return
    yield _cases(about, rule, len(plan.cases))
    for tool in plan.tools:
        spoken = coverage.checks(plan, tool, grounds.evidence)
        there = [one for one in spoken.values() if one is not None]
        sessions = {one.by.path: one.record for one in there}
        grounds.sessions |= sessions
        path = grounds.page(there)
        yield _tally(grounds, spoken).condition(f"{tool} {about}", "clean", "findings in", path)
        if there:
            yield _canaries(f"canaries {tool} {about}", tool, rule, sessions, path)
            yield _launches(f"launches {tool} {about}", there, path)
            yield grounds.sources(f"sources {tool} {about}", rule.device, there)


def in_force(grounds: Grounds) -> Iterator[Condition]:
    """Every suppression of the project, and of the sessions that were looked at: in force and, where all was run, in
    use. To be asked after the rules."""
    if not grounds.suppressions and not any(record.suppressions for record in grounds.sessions.values()):
        return
    told = dict.fromkeys(complaints(grounds.suppressions, grounds.today, ()))
    for record in grounds.sessions.values():
        tools = [tool.tool for tool in record.tools]
        pruned = record.plan.pruned
        told |= dict.fromkeys(complaints(record.suppressions, grounds.today, tools, narrowed=pruned))
    yield Condition(
        name="suppressions",
        required="each in force and in use",
        measured=f"{len(grounds.suppressions)} declared, {len(told)} complaints",
        verdict="fail" if told else "pass",
        detail="; ".join(told),
        path="pyproject.toml",
    )


def _tally(grounds: Grounds, spoken: Mapping[Pair, Spoken[SanitizeRecord, Checked] | None]) -> Tally:
    tally = Tally()
    for (case, variant), one in spoken.items():
        where = f"{variant} in {case}"
        if one is None:
            tally.missing.append(where)
            continue
        suppressed, others = _findings(grounds, one)
        grounds.found += (*suppressed, *others)
        uncompiled = one.result.verdict == "fail" and one.result.build is None
        if uncompiled or any(not found.accepted for found in others):
            tally.failed.append(where)
        elif one.result.verdict == "inconclusive":
            tally.open.append(f"{where}: {one.result.reason}")
        elif others:
            tally.accepted += 1
        else:
            tally.good += 1
    return tally


def _findings(grounds: Grounds, one: Spoken[SanitizeRecord, Checked]) -> tuple[list[Found], list[Found]]:
    """What was found, those that a suppression accepts apart; suppressions are those of the project today."""
    rules = [rule for rule in grounds.suppressions if rule.device in ("", one.record.plan.backend)]
    judged = suppressions.apply(rules, one.result.findings, grounds.today)
    reasons = {rule.name: rule.reason for rule in grounds.suppressions}
    evidence = grounds.shown(one.by.path)
    suppressed, others = [], []
    for name in dict.fromkeys(finding.suppressed for finding in judged):
        same = [finding for finding in judged if finding.suppressed == name]
        found = of_session(one.result, same, one.record.builds, grounds.project.root, evidence)
        if name:
            suppressed += [msgspec.structs.replace(each, accepted=reasons[name]) for each in found]
        else:
            others += grounds.accepting(found)
    return suppressed, others


def _cases(about: str, rule: SanitizeRule, planned: int) -> Condition:
    """The cases that a project declares for its sanitizers, as the rule narrows them."""
    least = max(rule.minimum.cases, 1)
    return Condition(
        name=f"cases of sanitizers {about}",
        required=f"at least {least}",
        measured=str(planned),
        verdict="pass" if planned >= least else "inconclusive",
        path="pyproject.toml",
    )


def _canaries(
    name: str, tool: Tool, rule: SanitizeRule, sessions: Mapping[Path, SanitizeRecord], path: str
) -> Condition:
    """Each session's own: those of one prove nothing of another."""
    own = [canary for record in sessions.values() for canary in record.canaries if canary.tool == tool]
    lacking = [canary for canary in own if not (canary.found and canary.twin_clean)]
    least = max(rule.minimum.canaries, 1)
    counts = {one.name: sum(canary.tool == tool for canary in record.canaries) for one, record in sessions.items()}
    told = [
        *(f"{one.name}: {one.detail}" for one in lacking),
        *(f"{folder}: {count or 'none'} ran" for folder, count in counts.items() if count < least),
    ]
    return Condition(
        name=name,
        required=f"all {len(own)} found, at least {least} a session",
        measured=str(len(own) - len(lacking)),
        verdict="pass" if own and not told else "inconclusive",
        detail="; ".join(told),
        path=path,
    )


def _launches(name: str, there: Sequence[Spoken[SanitizeRecord, Checked]], path: str) -> Condition:
    seen = sum(one.result.launches for one in there)
    planned = sum(one.result.planned_launches for one in there)
    return Condition(
        name=name,
        required=f"{planned} seen",
        measured=str(seen),
        verdict="pass" if seen == planned > 0 else "inconclusive",
        path=path,
    )
