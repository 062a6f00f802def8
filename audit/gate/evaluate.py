"""From evidence and a policy to a verdict, every condition listed. Nothing is run here and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import msgspec

from audit import __version__
from audit.gate import admission, audits, baseline, sanitizers
from audit.gate.baseline import Accepted
from audit.gate.evaluation import Grounds
from audit.gate.policy import Policy
from audit.gate.verdict import SCHEMA, Condition, Gate, Standing, overall
from audit.project import Project
from audit.records import machine
from audit.records.verify import Verified

_NAMED = 3


def evaluate(
    project: Project,
    name: str,
    policy: Policy,
    evidence: Sequence[Verified],
    accepted: Sequence[Accepted],
    *,
    started: str,
    today: date,
    baseline_file: str = "",
) -> Gate:
    """The verdict of a policy over evidence that was verified; `today` decides what is expired."""
    grounds = Grounds(project, policy, evidence, baseline.valid(accepted, today), today)
    conditions = [
        *(_folder(grounds, one) for one in evidence),
        *admission.conditions(project, policy, evidence),
        *_rules(grounds),
    ]
    if accepted:
        seen = {found.fingerprint for found in grounds.found}
        whole = not any(condition.verdict == "inconclusive" for condition in conditions)
        conditions.append(baseline.condition(accepted, seen, today, baseline_file, whole=whole))
    return Gate(
        schema=SCHEMA,
        kind="gate",
        tool=__version__,
        policy=name,
        started=started,
        commit=machine.commit(project.root),
        verdict=overall(conditions),
        conditions=_numbered(conditions),
        found=tuple(dict.fromkeys(grounds.found)),
        evidence=tuple(grounds.shown(one.path) for one in evidence),
    )


def _rules(grounds: Grounds) -> Iterator[Condition]:
    policy = grounds.policy
    for rule in policy.audits:
        for shape in rule.shapes:
            yield from audits.conditions(grounds, rule, shape)
    for sanitize_rule in policy.sanitizers:
        for shape in sanitize_rule.shapes:
            yield from sanitizers.conditions(grounds, sanitize_rule, shape)
    if not any(rule.shapes for rule in (*policy.audits, *policy.sanitizers)):
        why = "the policy asks for no audit and no sanitizer"
        yield Condition("rules", "at least 1", "0", "inconclusive", why, "pyproject.toml")
    yield from sanitizers.in_force(grounds)


def _folder(grounds: Grounds, one: Verified) -> Condition:
    """A folder of evidence: whole and unaltered, whatever it says. That it is stale counts where it is used."""
    wrong = [fault for fault in one.faults if fault.kind != "stale"]
    verdict: Standing = one.verdict if wrong else "pass"
    return Condition(
        name=f"evidence {one.path.name}",
        required="whole and unaltered",
        measured=", ".join(dict.fromkeys(fault.kind for fault in wrong)) or "whole and unaltered",
        verdict=verdict,
        detail="; ".join(fault.what for fault in wrong[:_NAMED]),
        path=grounds.shown(one.path),
    )


def _numbered(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Each under a name of its own, where two rules ask for the same shape on the same device."""
    seen: dict[str, int] = {}
    named = []
    for one in conditions:
        seen[one.name] = nth = seen.get(one.name, 0) + 1
        named.append(one if nth == 1 else msgspec.structs.replace(one, name=f"{one.name} ({nth})"))
    return tuple(named)
