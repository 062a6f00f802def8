"""Do the parts of one evidence agree? What can be derived is derived again and compared with what is written."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from audit.checks.result import worst
from audit.plan import Plan
from audit.records.bench import BenchEvidence
from audit.records.run import Evidence, summarize
from audit.records.sanitize import Checked, SanitizeEvidence, SanitizePlan
from audit.sanitize import suppressions
from audit.sanitize.verdict import summarize as summarize_session
from audit.sanitize.verdict import unproven

_Record: TypeAlias = Evidence | BenchEvidence | SanitizeEvidence
_PLAN = "plan.json"


def lacks(record: _Record) -> Iterator[str]:
    """What was planned and has no result, in a sentence each."""
    if isinstance(record, Evidence):
        planned = [(case.id, variant.label) for case in record.plan.cases for variant in record.plan.variants]
        missing = Counter(planned) - Counter((audit.case, audit.variant) for audit in record.audits)
        yield from (f"{variant} was planned in {case}, and has no result" for case, variant in missing)
    elif isinstance(record, SanitizeEvidence):
        missing_checks = Counter(_planned_checks(record.plan)) - Counter(map(_place, record.checked))
        yield from (f"{tool} was planned for {variant} in {case}" for tool, variant, case in missing_checks)
    elif not record.points:
        yield "nothing was timed"


def audit_disagrees(record: _Record, files: Mapping[str, bytes]) -> Iterator[str]:
    """Where plan, audits, builds and summary of an audit do not fit together."""
    assert isinstance(record, Evidence)
    if _differs(files[_PLAN], record.plan, Plan):
        yield f"{_PLAN} is not the plan that the record holds"
    planned = [(case.id, variant.label) for case in record.plan.cases for variant in record.plan.variants]
    extra = Counter((audit.case, audit.variant) for audit in record.audits) - Counter(planned)
    yield from (f"{variant} in {case} has more results than were planned" for case, variant in extra)
    ran = {audit.case for audit in record.audits}
    cases = {case.id: case for case in record.plan.cases}
    recorded = {one.case.id: one for one in record.cases}
    yield from (f"case {name} has results and no record" for name in ran - recorded.keys())
    for name, one in recorded.items():
        if cases.get(name) != one.case:
            yield f"case {name} is not the planned one"
        if (one.capture_sha256 is None) != (one.case.capture is None):
            yield f"case {name}: its capture has no digest"
    for audit in record.audits:
        if audit.verdict != (derived := worst([result.verdict for result in audit.results])):
            yield f"{audit.variant} in {audit.case}: written {audit.verdict}, but its checks make {derived}"
        if audit.build is not None and audit.build not in record.builds:
            yield f"{audit.variant} in {audit.case}: its build {audit.build} is not recorded"
    yield from (f"exposures name an unknown case {name}" for name in {e.case for e in record.exposures} - cases.keys())
    derived_summary = summarize(record.plan, record.audits, record.exposures, record.summary.seconds)
    yield from _fields("summary", record.summary, derived_summary)


def sanitize_disagrees(record: _Record, files: Mapping[str, bytes]) -> Iterator[str]:
    """Where plan, canaries, checks, suppressions and summary of a session do not fit together."""
    assert isinstance(record, SanitizeEvidence)
    if _differs(files[_PLAN], record.plan, SanitizePlan):
        yield f"{_PLAN} is not the plan that the record holds"
    extra = Counter(map(_place, record.checked)) - Counter(_planned_checks(record.plan))
    yield from (f"{tool} over {variant} in {case} was not planned" for tool, variant, case in extra)
    for one in record.checked:
        where = f"{one.tool} over {one.variant} in {one.case}: written {one.verdict}"
        open_ = [finding for finding in one.findings if not finding.suppressed]
        if (one.verdict == "fail") != bool(open_) and one.build is not None:
            yield f"{where}, but it has {len(open_)} findings that nothing suppresses"
        if one.verdict == "pass" and (doubts := unproven(one.tool, record.canaries)):
            yield f"{where}, but {'; '.join(doubts)}"
        if one.verdict == "pass" and (one.launches != one.planned_launches or one.launches < 1):
            yield f"{where}, but {one.launches} of {one.planned_launches} launches were seen"
        if one.build is not None and one.build not in record.builds:
            yield f"{where}; its build {one.build} is not recorded"
    counted = suppressions.counted(record.suppressions, (f for one in record.checked for f in one.findings))
    if counted != record.suppressions:
        yield "the suppressions do not count the findings that they suppress"
    started = datetime.fromisoformat(record.started)
    tools = tuple(tool.tool for tool in record.tools)
    days = sorted({started.date(), (started + timedelta(seconds=record.summary.seconds)).date()})
    derived = [
        summarize_session(
            record.plan,
            record.checked,
            record.canaries,
            suppressions.complaints(record.suppressions, day, tools, narrowed=record.plan.pruned),
            record.summary.seconds,
        )
        for day in days
    ]
    if record.summary not in derived:
        yield from _fields("summary", record.summary, derived[0])


def bench_disagrees(record: _Record, files: Mapping[str, bytes]) -> Iterator[str]:  # noqa: ARG001
    """Where what a bench timed does not fit its builds, its checks and its method."""
    assert isinstance(record, BenchEvidence)
    compared = {(one.variant, one.context): one for one in record.checked}
    for point in record.points:
        for pair in point.pairs:
            where = f"{pair.b} beside {pair.a} at {point.context:,} tokens"
            trials = {len(pair.a_ms), len(pair.b_ms), len(pair.again_ms)}
            if trials != {record.method.trials}:
                yield f"{where}: expected {record.method.trials} trials of each arm, but got {sorted(trials)}"
            if not all(ms > 0 for ms in (*pair.a_ms, *pair.b_ms, *pair.again_ms)):
                yield f"{where}: a time that is not above zero"
            ours = [pair.a] if pair.b_is_peer else [pair.a, pair.b]
            yield from (f"{where}: no build of {name} is recorded" for name in ours if name not in record.builds)
            if pair.b_is_peer and pair.b not in record.peers:
                yield f"{where}: the peer's package is not recorded"
            for name in ours:
                if (one := compared.get((name, point.context))) and one.differing:
                    yield f"{where}: timed, though {one.differing} bytes of {name} differ"


def _planned_checks(plan: SanitizePlan) -> list[tuple[str, str, str]]:
    return [
        (tool, variant, case.id) for tool, variant, case in itertools.product(plan.tools, plan.variants, plan.cases)
    ]


def _place(one: Checked) -> tuple[str, str, str]:
    return one.tool, one.variant, one.case


def _differs(raw: bytes, plan: Plan | SanitizePlan, kind: type[Plan] | type[SanitizePlan]) -> bool:
    try:
        return msgspec.json.decode(raw, type=kind) != plan
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True


def _fields(what: str, written: msgspec.Struct, derived: msgspec.Struct) -> Iterator[str]:
    """Each field in which two records of one kind differ."""
    for name in written.__struct_fields__:
        if (says := getattr(written, name)) != (makes := getattr(derived, name)):
            yield f"{what}: {name} is written as {says!r}, but the results make {makes!r}"
