"""Which variants may be defaults, and which captures there must be: conditions on the project itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from audit.capture.store import CaptureStore
from audit.errors import CaptureError
from audit.gate.evaluation import listed
from audit.gate.policy import Policy
from audit.gate.verdict import WORST_FIRST, Condition, Standing
from audit.plan import Backend, planned_variants
from audit.project import Project
from audit.records.bench import BenchRecord
from audit.records.run import Audit, RunRecord
from audit.records.verify import Verified, find, verify
from audit.spec import Operator, Variant


def conditions(project: Project, policy: Policy, evidence: Sequence[Verified]) -> Iterator[Condition]:
    """For every operator that the policy names a shape of: plans, admitted variants, default; then capture sets."""
    shapes = {shape for rule in (*policy.audits, *policy.sanitizers) for shape in rule.shapes}
    operators = {project.shape(shape)[0].name: project.shape(shape)[0] for shape in sorted(shapes)}
    for operator in operators.values():
        yield _closed(project, operator, evidence)
        yield from _admitted(project, policy, operator, evidence)
        if operator.default is not None:
            yield _default(project, policy, operator, operator.variant(operator.default), evidence)
    yield from _capture_sets(project)


def _closed(project: Project, operator: Operator, evidence: Sequence[Verified]) -> Condition:
    """A closed variant runs when it is named, and never by default: not as a parent, not in a plan that is whole. What
    it says closed it must be there."""
    planned = {variant.name for variant in planned_variants(operator, ()) if variant.status == "closed"}
    closed = {variant.name: variant.evidence for variant in operator.variants if variant.status == "closed"}
    plans = [one.record.plan for one in evidence if one.sound and isinstance(one.record, RunRecord)]
    for plan in plans:
        if plan.operator == operator.name and not plan.pruned:
            planned |= {variant.name for variant in plan.variants if variant.status == "closed"}
    told = [
        f"{name}: its evidence is not there: {', '.join(absent)}"
        for name, places in closed.items()
        if (absent := _absent(project, places))
    ]
    if planned:
        told.insert(0, f"{', '.join(sorted(planned))}: closed, and in a default plan; plans are to leave it out")
    return Condition(
        name=f"closed variants of {operator.name}",
        required="none in a default plan",
        measured=f"{len(planned)} of {len(closed)}",
        verdict="fail" if planned else "inconclusive" if told else "pass",
        detail="; ".join(told),
    )


def _absent(project: Project, places: Iterable[str]) -> list[str]:
    """Those of a variant's evidence that do not lie in the project."""
    found = [(place, (project.root / place).resolve()) for place in places]
    return [place for place, path in found if not path.is_relative_to(project.root) or not path.exists()]


class _Shown(msgspec.Struct, frozen=True):
    """What evidence says of one variant; each of `wrong` is a sentence, and so is `lacking` where there is none."""

    passed: int
    wrong: tuple[str, ...]
    lacking: str = ""

    @property
    def standing(self) -> Standing:
        """Evidence that is named and is not there, not unaltered, or speaks against the variant, fails."""
        return "fail" if self.wrong else "inconclusive" if self.lacking else "pass"

    @property
    def told(self) -> tuple[str, ...]:
        """All that keeps it from standing."""
        return (*self.wrong, *((self.lacking,) if self.lacking else ()))


def _admitted(
    project: Project, policy: Policy, operator: Operator, evidence: Sequence[Verified]
) -> Iterator[Condition]:
    """Each admitted variant by itself: it takes part in default plans, and others are compared with it."""
    admitted = [variant for variant in operator.variants if variant.status == "admitted"]
    if not admitted:
        return
    shown = {variant.name: _shown(project, policy, operator, variant, evidence) for variant in admitted}
    standings = [one.standing for one in shown.values()]
    yield Condition(
        name=f"admitted variants of {operator.name}",
        required=f"{len(admitted)} with evidence that is there, unaltered, and passes",
        measured=str(standings.count("pass")),
        verdict=min(standings, key=WORST_FIRST.index),
        detail="; ".join(f"{name}: {', '.join(one.told)}" for name, one in shown.items() if one.told),
    )


def _default(
    project: Project, policy: Policy, operator: Operator, variant: Variant, evidence: Sequence[Verified]
) -> Condition:
    shown = _shown(project, policy, operator, variant, evidence)
    told = [*shown.told] if variant.status != "control" else [*shown.wrong]
    verdict = shown.standing if told else "pass"
    if variant.status not in policy.defaults or variant.status == "closed":
        verdict = "fail"
        told.insert(0, f"{variant.name} is {variant.status}; admit it with evidence, or make another the default")
    return Condition(
        name=f"default of {operator.name}",
        required=f"{' or '.join(policy.defaults)}, with evidence",
        measured=f"{variant.name}, {variant.status}; {shown.passed} audits passed on {_device(policy)}",
        verdict=verdict,
        detail="; ".join(told),
        path=next(iter(variant.evidence), ""),
    )


def _shown(
    project: Project, policy: Policy, operator: Operator, variant: Variant, evidence: Sequence[Verified]
) -> _Shown:
    """What the evidence that a variant names says of it, and all other that was looked at."""
    absent = _absent(project, variant.evidence)
    looked = {one.path.resolve(): one for one in evidence}
    wrong = [f"its evidence is not there: {', '.join(absent)}"] if absent else []
    for place in (place for place in variant.evidence if place not in absent):
        for home in find(project.root / place):
            if (key := home.resolve()) not in looked:
                looked[key] = verify(home, project)
            one = looked[key]
            if not one.sound:
                wrong.append(f"its evidence {place} is not as it was: {one.told()}")
            elif isinstance(one.record, BenchRecord) and (differing := _differing(one.record, variant.name)):
                wrong.append(f"its evidence {place} timed it with {differing:,} bytes unlike its parent's")
    newest = _newest(variant.name, operator.name, _device(policy), looked.values())
    by_verdict = {
        verdict: [audit.case for audit in newest if audit.verdict == verdict]
        for verdict in ("pass", "fail", "inconclusive")
    }
    if by_verdict["fail"]:
        wrong.append(listed("it fails in", by_verdict["fail"]))
    lacking = listed("inconclusive in", by_verdict["inconclusive"]) if by_verdict["inconclusive"] else ""
    if not newest:
        lacking = f"no evidence of {variant.name} on {_device(policy)} is whole and unaltered"
    return _Shown(len(by_verdict["pass"]), tuple(wrong), lacking)


def _device(policy: Policy) -> Backend:
    return "cuda" if any(rule.device == "cuda" for rule in policy.audits) else "host"


def _differing(record: BenchRecord, variant: str) -> int:
    return sum(one.differing for one in record.checked if one.variant == variant)


def _newest(variant: str, operator: str, device: Backend, evidence: Iterable[Verified]) -> list[Audit]:
    """Of each case the newest audit of a variant."""
    records = [one.record for one in evidence if one.sound and isinstance(one.record, RunRecord)]
    found: dict[str, Audit] = {}
    for record in sorted(records, key=lambda record: record.started):
        if (record.plan.backend, record.plan.operator) == (device, operator):
            found |= {audit.case: audit for audit in record.audits if audit.variant == variant}
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
