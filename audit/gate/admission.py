"""Which variants may be defaults, and which captures there must be: conditions on the project itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from audit.capture.store import CaptureStore
from audit.errors import CaptureError
from audit.evidence.schema import Audit, Evidence
from audit.evidence.verify import Verified, find, verify
from audit.gate.policy import Policy
from audit.gate.verdict import Condition, Standing
from audit.plan import planned_variants
from audit.project import Project
from audit.spec import Operator, Variant


def conditions(project: Project, policy: Policy, evidence: Sequence[Verified]) -> Iterator[Condition]:
    """For every operator that the policy names a shape of, its default and its plans; then the capture sets."""
    shapes = {shape for rule in (*policy.audits, *policy.sanitizers) for shape in rule.shapes}
    operators = {project.shape(shape)[0].name: project.shape(shape)[0] for shape in sorted(shapes)}
    for operator in operators.values():
        yield _closed(operator, evidence)
        if operator.default is not None:
            yield _default(project, policy, operator, operator.variant(operator.default), evidence)
    yield from _capture_sets(project)


def _closed(operator: Operator, evidence: Sequence[Verified]) -> Condition:
    """A closed variant runs when it is named, and never by default: not as a parent, not in a plan that is whole."""
    planned = {variant.name for variant in planned_variants(operator, ()) if variant.status == "closed"}
    closed = {variant.name for variant in operator.variants if variant.status == "closed"}
    plans = [one.record.plan for one in evidence if one.sound and isinstance(one.record, Evidence)]
    for plan in plans:
        if plan.operator == operator.name and not plan.pruned:
            planned |= {variant.name for variant in plan.variants if variant.status == "closed"}
    return Condition(
        name=f"closed variants of {operator.name}",
        required="none in a default plan",
        measured=f"{len(planned)} of {len(closed)}",
        verdict="fail" if planned else "pass",
        detail=f"{', '.join(sorted(planned))}: closed, and in a default plan; give its children another parent"
        if planned
        else "",
    )


def _default(
    project: Project, policy: Policy, operator: Operator, variant: Variant, evidence: Sequence[Verified]
) -> Condition:
    named = {place: (project.root / place).resolve() for place in variant.evidence}
    absent = [place for place, path in named.items() if not path.is_relative_to(project.root) or not path.exists()]
    looked = {one.path.resolve(): one for one in evidence}
    for place, path in named.items():
        if place not in absent and path.is_dir():
            looked |= {home: verify(home, project) for home in find(path) if home not in looked}
    devices = {rule.device for rule in policy.audits}
    device = "cuda" if "cuda" in devices else "host"
    audits = _audits(variant.name, operator.name, device, looked.values())
    passed = sum(audit.verdict == "pass" for audit in audits)
    allowed = variant.status in policy.defaults and variant.status != "closed"
    verdict: Standing = "pass"
    told = []
    if not allowed:
        verdict = "fail"
        told.append(f"{variant.name} is {variant.status}; admit it with evidence, or make another the default")
    if absent:
        verdict = "fail"
        told.append(f"its evidence is not there: {', '.join(absent)}")
    if variant.status != "control" and verdict == "pass" and not passed:
        verdict = "inconclusive"
        told.append(f"no evidence of {variant.name} on {device} is whole and unaltered")
    return Condition(
        name=f"default of {operator.name}",
        required=f"{' or '.join(policy.defaults)}, with evidence",
        measured=f"{variant.name}, {variant.status}; {passed} audits passed on {device}",
        verdict=verdict,
        detail="; ".join(told),
        path=next(iter(variant.evidence), ""),
    )


def _audits(variant: str, operator: str, device: str, evidence: Iterable[Verified]) -> list[Audit]:
    records = [one.record for one in evidence if one.sound and isinstance(one.record, Evidence)]
    return [
        audit
        for record in records
        if (record.plan.backend, record.plan.operator) == (device, operator)
        for audit in record.audits
        if audit.variant == variant
    ]


def _capture_sets(project: Project) -> Iterator[Condition]:
    if project.captures is None:
        return
    try:
        counts = CaptureStore(project.captures).census()
    except CaptureError as error:
        yield Condition("capture sets", "whole", "cannot be read", "inconclusive", str(error))
        return
    for census in counts:
        yield Condition(
            name=f"capture set {census.set}",
            required=f"{census.expected} layers x ranks",
            measured=str(census.captured),
            verdict="pass" if census.whole else "inconclusive",
            detail="" if census.whole else str(census),
            path=f"{project.settings.captures}/{census.set}",
        )
