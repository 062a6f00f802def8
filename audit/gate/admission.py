"""Conditions on the project itself: closed, admitted and default variants, and whole capture sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from audit.capture.store import CaptureStore
from audit.errors import CaptureError
from audit.gate.policy import Policy, allowed_signers
from audit.gate.rule_conditions import first_names
from audit.gate.verdict import WORST_FIRST, Condition, Standing
from audit.plan import Backend, PlannedVariant, planned_variants
from audit.project import Project
from audit.records.bench import BenchRecord
from audit.records.run import Audit, RunRecord
from audit.records.verify import Verification, find_records, verify
from audit.spec import Operator, Variant


def admission_conditions(project: Project, policy: Policy, evidence: Sequence[Verification]) -> Iterator[Condition]:
    """For every operator that the policy names a shape of: plans, admitted variants, default; then capture sets."""
    shapes = {shape for rule in (*policy.audits, *policy.sanitizers) for shape in rule.shapes}
    operators = {project.shape(shape)[0].name: project.shape(shape)[0] for shape in sorted(shapes)}
    for operator in operators.values():
        yield _closed(project, operator, evidence)
        yield from _admitted(project, policy, operator, evidence)
        if operator.default is not None:
            yield _default(project, policy, operator, operator.variant(operator.default), evidence)
    yield from _capture_sets(project)


def _closed(project: Project, operator: Operator, evidence: Sequence[Verification]) -> Condition:
    """A closed variant runs only when it is named: no default plan audits it. The evidence that
    closed it must be in the project."""
    closed = {variant.name: variant for variant in operator.variants if variant.status == "closed"}
    planned = {variant.name for variant in planned_variants(operator, ()) if _closed_by_default(variant)}
    plans = [one.record.plan for one in evidence if one.sound and isinstance(one.record, RunRecord)]
    for plan in plans:
        if plan.operator == operator.name and not plan.pruned:
            planned |= {variant.name for variant in plan.variants if _closed_by_default(variant)}
    sentences = [
        f"{name}: its evidence is missing: {', '.join(absent)}"
        for name, variant in closed.items()
        if (absent := _absent(project, variant.evidence))
    ]
    if planned:
        sentences.insert(0, f"{', '.join(sorted(planned))}: closed, and in a default plan; leave it out of the plan")
    return Condition(
        name=f"closed variants of {operator.name}",
        required="none in a default plan",
        measured=f"{len(planned)} of {len(closed)}",
        verdict="fail" if planned else "inconclusive" if sentences else "pass",
        detail="; ".join(sentences),
    )


def _closed_by_default(variant: PlannedVariant) -> bool:
    """A closed variant that is audited, not one that another is merely compared with."""
    return variant.status == "closed" and not variant.baseline_only


def _absent(project: Project, paths: Iterable[str]) -> list[str]:
    """Those of a variant's evidence that do not lie in the project."""
    found = [(path, (project.root / path).resolve()) for path in paths]
    return [path for path, whole in found if not whole.is_relative_to(project.root) or not whole.exists()]


class _Support(msgspec.Struct, frozen=True):
    """What evidence says of one variant. Each of `objections` is a sentence; so is `gap`, empty where there is none."""

    passed: int
    objections: tuple[str, ...]
    gap: str = ""

    @property
    def standing(self) -> Standing:
        """Evidence that is missing, altered, or speaks against the variant fails."""
        return "fail" if self.objections else "inconclusive" if self.gap else "pass"

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that keeps the variant from being admitted."""
        return (*self.objections, *((self.gap,) if self.gap else ()))


def _admitted(
    project: Project, policy: Policy, operator: Operator, evidence: Sequence[Verification]
) -> Iterator[Condition]:
    """Each admitted variant by itself: it takes part in default plans, and others are compared with it."""
    admitted = [variant for variant in operator.variants if variant.status == "admitted"]
    if not admitted:
        return
    supports = {variant.name: _support(project, policy, operator, variant, evidence) for variant in admitted}
    standings = [support.standing for support in supports.values()]
    yield Condition(
        name=f"admitted variants of {operator.name}",
        required=f"{len(admitted)} with evidence that is present, unaltered, and passes",
        measured=str(standings.count("pass")),
        verdict=min(standings, key=WORST_FIRST.index),
        detail="; ".join(f"{name}: {', '.join(one.sentences)}" for name, one in supports.items() if one.sentences),
    )


def _default(
    project: Project, policy: Policy, operator: Operator, variant: Variant, evidence: Sequence[Verification]
) -> Condition:
    """The default variant has a status that the policy allows, and evidence; a control needs none."""
    support = _support(project, policy, operator, variant, evidence)
    sentences = [*(support.objections if variant.status == "control" else support.sentences)]
    verdict = support.standing if sentences else "pass"
    if variant.status not in policy.defaults or variant.status == "closed":
        verdict = "fail"
        sentences.insert(0, f"{variant.name} is {variant.status}; admit it with evidence, or make another the default")
    return Condition(
        name=f"default of {operator.name}",
        required=f"{' or '.join(policy.defaults)}, with evidence",
        measured=f"{variant.name}, {variant.status}; {support.passed} audits passed on {_device(policy)}",
        verdict=verdict,
        detail="; ".join(sentences),
        path=next(iter(variant.evidence), ""),
    )


def _support(
    project: Project, policy: Policy, operator: Operator, variant: Variant, evidence: Sequence[Verification]
) -> _Support:
    """What evidence says of a variant: the evidence that it names, and all other that the gate has."""
    absent = _absent(project, variant.evidence)
    verifications = {one.path.resolve(): one for one in evidence}
    objections = [f"its evidence is missing: {', '.join(absent)}"] if absent else []
    for path in (path for path in variant.evidence if path not in absent):
        for home in find_records(project.root / path):
            if (key := home.resolve()) not in verifications:
                verifications[key] = verify(home, project, allowed_signers(project, policy))
            one = verifications[key]
            if not one.sound:
                objections.append(f"its evidence {path} cannot be used: {one.describe()}")
            elif isinstance(one.record, BenchRecord) and (differing := _differing(one.record, variant.name)):
                objections.append(f"its evidence {path} timed it with {differing:,} results unlike its parent's")
    newest = _newest(variant.name, operator.name, _device(policy), verifications.values())
    by_verdict = {
        verdict: [audit.case for audit in newest if audit.verdict == verdict]
        for verdict in ("pass", "fail", "inconclusive")
    }
    if by_verdict["fail"]:
        objections.append(first_names("it fails in", by_verdict["fail"]))
    gap = first_names("inconclusive in", by_verdict["inconclusive"]) if by_verdict["inconclusive"] else ""
    if not newest:
        gap = f"no evidence of {variant.name} on {_device(policy)} is whole and unaltered"
    return _Support(len(by_verdict["pass"]), tuple(objections), gap)


def _device(policy: Policy) -> Backend:
    return "cuda" if any(rule.device == "cuda" for rule in policy.audits) else "host"


def _differing(record: BenchRecord, variant: str) -> int:
    return sum(one.refused for one in record.checked if one.variant == variant)


def _newest(variant: str, operator: str, device: Backend, evidence: Iterable[Verification]) -> list[Audit]:
    """The newest audit of a variant in each case."""
    records = [one.record for one in evidence if one.sound and isinstance(one.record, RunRecord)]
    found: dict[str, Audit] = {}
    for record in sorted(records, key=lambda record: record.started):
        if (record.plan.backend, record.plan.operator) == (device, operator):
            baselines = {one.label for one in record.plan.variants if one.baseline_only}
            mine = [audit for audit in record.audits if audit.variant == variant and variant not in baselines]
            found |= {audit.case: audit for audit in mine}
    return list(found.values())


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
