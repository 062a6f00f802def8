"""The record of one audit run: what did not pass in it, what can be derived from it, and its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from audit.argument_pairs import LaunchArguments, indistinguishable, launch_arguments
from audit.checks.result import Result, Verdict, worst
from audit.plan import Plan
from audit.records import derive
from audit.records.completeness import contradictions, missing_results
from audit.records.kind import PLAN, Draft, Headline, Kind
from audit.records.resolution import RELATION, ResolvedCase, launches_digest, relation_digest
from audit.records.run_schema import (
    ARGUMENTS_SINCE,
    LAUNCHES_SINCE,
    OLDER,
    SCHEMA,
    Audit,
    CaseRecord,
    RunRecord,
    Summary,
    summarize_run,
)
from audit.relations import Bitwise, relation_text

__all__ = [
    "ARGUMENTS_SINCE",
    "KIND",
    "OLDER",
    "SCHEMA",
    "Audit",
    "CaseRecord",
    "CheckFinding",
    "RunRecord",
    "Summary",
    "arguments_of",
    "draft",
    "families_run",
    "findings",
    "run_cases",
    "summarize_run",
]


class CheckFinding(msgspec.Struct, frozen=True):
    """A check that did not pass for one variant in one case: its first such result, and all steps with one.

    `families` are those of the steps that are input families.
    """

    audit: Audit
    result: Result
    steps: tuple[str, ...]
    families: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """The variant, case and steps in words; input families are counted where other steps have the finding too."""
        own = [step for step in self.steps if step not in self.families]
        noun = f"input famil{'ies' if self.families[1:] else 'y'}"
        parts = [f"step{'s' if own[1:] else ''} {', '.join(own)}"] if own else []
        if self.families:
            parts.append(f"{len(self.families)} {noun}" if own else f"{noun} {', '.join(self.families)}")
        return ", ".join([self.audit.variant, self.audit.case, *([" and ".join(parts)] if parts else [])])


def findings(record: RunRecord) -> list[CheckFinding]:
    """All findings, failures before inconclusive results."""
    groups: dict[tuple[str, str, str, Verdict], list[tuple[Audit, Result]]] = {}
    for audit in record.audits:
        for result in audit.results:
            if result.verdict != "pass":
                key = (audit.case, audit.variant, result.check, result.verdict)
                groups.setdefault(key, []).append((audit, result))
    families = {case.case.id: case.families for case in record.cases}
    merged = []
    for same in groups.values():
        audit, first = same[0]
        steps = tuple(result.step for _, result in same if result.step)
        in_families = tuple(step for step in steps if step in families.get(audit.case, ()))
        merged.append(CheckFinding(audit, first, steps, in_families))
    return sorted(merged, key=lambda finding: finding.result.verdict != "fail")


def families_run(record: RunRecord) -> list[str]:
    """The input families that ran in some case."""
    return list(dict.fromkeys(name for case in record.cases for name in case.families))


def run_cases(plan: Plan) -> tuple[ResolvedCase, ...]:
    """The cases of a plan with the variants that it takes from the working tree."""
    variants = tuple(variant.name for variant in plan.variants if variant.revision is None)
    return tuple(ResolvedCase(case, variants, plan.backend == "cuda") for case in plan.cases)


def arguments_of(cases: Iterable[CaseRecord]) -> Iterator[LaunchArguments]:
    """The arguments of every launch in some cases, as the record keeps them."""
    for case in cases:
        for variant, launches in case.launches.items():
            yield from launch_arguments(variant, launches)


def draft(runs: Path, plan: Plan) -> Draft:
    """The unfinished folder of a run, with its plan."""
    return Draft(runs, KIND, plan.shape, {PLAN: plan})


def _lacks(record: RunRecord) -> Iterator[str]:
    planned = _planned(record)
    missing = Counter(planned) - Counter((audit.case, audit.variant) for audit in record.audits)
    yield from (f"{variant} was planned in {case}, and has no result" for case, variant in missing)


def _disagrees(record: RunRecord, files: Mapping[str, bytes]) -> Iterator[str]:
    if derive.differs(files[PLAN], record.plan, Plan):
        yield f"{PLAN} differs from the plan in the record"
    extra = Counter((audit.case, audit.variant) for audit in record.audits) - Counter(_planned(record))
    yield from (f"{variant} in {case} has more results than planned" for case, variant in extra)
    yield from _parents(record.plan)
    ran = {audit.case for audit in record.audits}
    cases = {case.id: case for case in record.plan.cases}
    recorded = {case.case.id: case for case in record.cases}
    yield from (f"case {name} has results but no record" for name in ran - recorded.keys())
    for name, case in recorded.items():
        if cases.get(name) != case.case:
            yield f"case {name} differs from the planned one"
        if (case.capture_sha256 is None) != (case.case.capture is None):
            yield f"case {name}: expected a digest if and only if it uses a capture"
    for audit in record.audits:
        if audit.verdict != (derived := worst([result.verdict for result in audit.results])):
            yield f"{audit.variant} in {audit.case}: recorded as {audit.verdict}, but its checks give {derived}"
        if audit.build is not None and audit.build not in record.builds:
            yield f"{audit.variant} in {audit.case}: its build {audit.build} is not recorded"
    if record.schema >= LAUNCHES_SINCE:
        yield from _launches(record)
        yield from _relations(record)
    for audit in record.audits:
        where = f"{audit.variant} in {audit.case}"
        if audit.case in recorded:
            lacking = missing_results(record, audit, recorded[audit.case])
            yield from (f"{where}: its plan asks for {what}, which it lacks" for what in lacking)
        yield from (f"{where}: {what}" for what in contradictions(record, audit))
    yield from (f"exposures name an unknown case {name}" for name in {e.case for e in record.exposures} - cases.keys())
    summary = record.summary
    pairs = summary.indistinguishable
    if record.schema >= LAUNCHES_SINCE and not record.plan.pruned:
        pairs = indistinguishable(arguments_of(record.cases))
    derived_summary = summarize_run(record.plan, record.audits, record.exposures, summary.seconds, pairs)
    if record.plan.pruned and summary.indistinguishable:
        yield "summary: indistinguishable is about default plans, and the plan was narrowed"
    yield from derive.fields("summary", record.summary, derived_summary)


def _parents(plan: Plan) -> Iterator[str]:
    """Where a variant is compared with one that has not run by then."""
    before: set[str] = set()
    for variant in plan.variants:
        if variant.parent is not None and variant.parent not in before:
            yield f"{PLAN}: {variant.label} is compared with {variant.parent}, which does not precede it in the plan"
        before.add(variant.label)


def _launches(record: RunRecord) -> Iterator[str]:
    """Where the launches of a case are not those that were planned, counted and resolved."""
    labels = [variant.label for variant in record.plan.variants]
    resolved = record.closure.resolved.cases if record.closure and record.closure.resolved else {}
    for case in record.cases:
        name = case.case.id
        if sorted(case.launches) != sorted(labels):
            yield f"case {name}: expected launches of {', '.join(labels)}, but got those of {', '.join(case.launches)}"
        for label, launches in case.launches.items():
            recorded = resolved.get(name, {}).get(f"launches of {label}")
            if recorded is not None and recorded != launches_digest(launches):
                yield f"case {name}: the launches of {label} are not those that its declaration resolved to"


def _relations(record: RunRecord) -> Iterator[str]:
    """Where the relation of a variant to its parent is not the one that its declaration resolved to."""
    resolved = record.closure.resolved.cases if record.closure and record.closure.resolved else {}
    past = {variant.label for variant in record.plan.variants if variant.revision}
    for variant in record.plan.variants:
        bitwise = variant.relation == relation_text(Bitwise())
        if variant.revision or variant.parent in past:
            if not bitwise:
                yield f"{variant.label}: expected the relation bitwise to another revision, but got {variant.relation}"
            continue
        expected = None if bitwise else relation_digest(variant.relation)
        for name, parts in resolved.items():
            if parts.get(f"{RELATION}{variant.name}") != expected:
                yield f"case {name}: the relation of {variant.label} is not the one that its declaration resolved to"


def _planned(record: RunRecord) -> list[tuple[str, str]]:
    return [(case.id, variant.label) for case in record.plan.cases for variant in record.plan.variants]


def _headline(record: RunRecord) -> Headline:
    plan, summary = record.plan, record.summary
    first = next(iter(findings(record)), None)
    return Headline(
        operator=plan.operator,
        shape=plan.shape,
        backend=plan.backend,
        verdict=summary.verdict,
        counts=f"{summary.passed} of {summary.planned} audits passed",
        problem=f"{first.result.check}: {first.scope}: {first.result.detail}" if first else "",
    )


def _captures(record: RunRecord) -> Mapping[str, str | None]:
    return {case.case.capture: case.capture_sha256 for case in record.cases if case.case.capture}


KIND = Kind(
    name="audit",
    title="an audit",
    file="evidence.json",
    record=RunRecord,
    schemas=(SCHEMA, *OLDER),
    beside=(PLAN,),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.run_page",
    resolved_cases=lambda record: run_cases(record.plan),
    captures=_captures,
)
