"""Which results an audit must have before it can say anything, and what can be derived from those that it has.

A forged or truncated record may agree with its own counts. It cannot lack a check, a step or a comparison that its plan
asks for, pass a value that is over its limit, or compare a variant with itself.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from audit.checks.relation import NO_BUFFER
from audit.checks.result import Figure, Note, Result
from audit.plan import PlannedVariant
from audit.records.run_schema import LAUNCHES_SINCE, Audit, CaseRecord, RunRecord, same_code, same_sources
from audit.relations import Bitwise, Unrelated, relation_text

BITWISE, UNRELATED = relation_text(Bitwise()), relation_text(Unrelated())
OTHERS = f"others: {BITWISE}"
_EACH_STEP = ("workspace", "inputs", "finite")
_COUNTED = ("bytes", "workspace", "guards", "inputs", "finite", "repeat", "graph", "host")
"""Checks whose measured value counts what is wrong: a pass has none."""


def completed(audit: Audit) -> bool:
    """Whether every execution ran to its end. What ended it early leaves one result: `fail` for a crash or a time-out,
    `inconclusive` for what the backend does not support."""
    return not (len(audit.results) == 1 and audit.results[0].check == "completion" and audit.verdict != "pass")


def missing_results(record: RunRecord, audit: Audit, case: CaseRecord) -> Iterator[str]:
    """What an audit that ran to its end should hold and does not: a check, or a check in a step."""
    planned = next((variant for variant in record.plan.variants if variant.label == audit.variant), None)
    if planned is None or not completed(audit):
        return
    on_gpu = record.plan.backend == "cuda"
    on_host = on_gpu and "host" in record.plan.checks
    present = [(result.check, result.step) for result in audit.results]
    executions = 2 + on_gpu + on_host  # plain, again; on a GPU a graph, and the host where that is promised
    if (count := sum(check == "completion" for check, _ in present)) < executions:
        yield f"completion of {executions} executions, but {count} are there"
    if ("identity", "") not in present:
        yield "identity"
    wanted = [
        *_EACH_STEP,
        *(("graph",) if on_gpu else ()),
        *(("host",) if on_host else ()),
        *(comparisons_of(planned, audit) if planned.parent else ()),
    ]
    for check in wanted:
        if lacking := [step for step in case.steps if (check, step) not in present]:
            yield f"{check} in {', '.join(lacking)}"
    guarded = (1 + on_host) * len(case.steps) + 2
    if (count := sum(check == "guards" for check, _ in present)) < guarded:
        yield f"guards at {guarded} moments, but {count} are there"
    repeated = {"live", "restore"} <= set(case.steps)
    if (count := sum(check == "repeat" for check, _ in present)) < 1 + repeated:
        yield f"repeat {1 + repeated} times, but {count} are there"
    if case.case.probe and (f"probe:{case.case.probe}", case.steps[0]) not in present:
        yield f"probe:{case.case.probe}"


def comparisons_of(planned: PlannedVariant, audit: Audit) -> Iterator[str]:
    """The checks that a variant's relation to its parent asks for: one of them judges each buffer that is judged."""
    words = [part.rpartition(": ")[2] for part in planned.relation.split(", ")]
    by_buffer = planned.relation.endswith(f", {OTHERS}")
    if by_buffer and Note("bytes", NO_BUFFER) in audit.notes:
        words = words[:-1]
    if BITWISE in words:
        yield "bytes"
    if any(word not in (BITWISE, UNRELATED) for word in words):
        yield "relation"


def contradictions(record: RunRecord, audit: Audit) -> Iterator[str]:
    """Where the results of an audit contradict their own figures, its builds, or its plan."""
    for result in audit.results:
        if result.verdict == "pass" and (why := _fails(result)):
            yield f"{result.check}{f' in {result.step}' if result.step else ''} is written pass, but {why}"
    planned = next((variant for variant in record.plan.variants if variant.label == audit.variant), None)
    build = record.builds.get(audit.build or "")
    if planned is None:
        return
    yield from _launch_counts(record, audit)
    if completed(audit) and build is None:
        yield "it ran to its end, but no build of it is recorded"
    if build is not None:
        if build.backend != record.plan.backend:
            yield f"its build is for {build.backend}, but the plan runs on {record.plan.backend}"
        if not build.sources and not build.binary_sha256:
            yield "its build names neither sources nor a binary"
        elif planned.source != build.source or (build.sources and build.source not in build.sources):
            yield f"its build is made from {build.source}, but the plan names {planned.source}"
    parent = next((each for each in record.audits if (each.case, each.variant) == (audit.case, planned.parent)), None)
    if parent is None:
        return
    of_today = any(variant.label == planned.parent and not variant.revision for variant in record.plan.variants)
    passed = any((result.check, result.verdict) == ("identity", "pass") for result in audit.results)
    if of_today and passed and _is_a_copy(record, planned.label, parent.variant):
        yield f"in every case it launches what {planned.parent} launches, with which it is compared"


def _is_a_copy(record: RunRecord, variant: str, parent: str) -> bool:
    return same_code(record.audits, variant, parent) and same_sources(record.audits, record.builds, variant, parent)


def _launch_counts(record: RunRecord, audit: Audit) -> Iterator[str]:
    """Where the launches that were planned are not those of the case; records of older versions do not keep these."""
    case = next((each for each in record.cases if each.case.id == audit.case), None)
    if record.schema < LAUNCHES_SINCE or case is None or not completed(audit):
        return
    once = len(case.launches.get(audit.variant, ()))
    expected = {once * steps for steps in range(1, len(case.steps) + 1)}  # the second arm may run some steps alone
    counts = [result for result in audit.results if result.check == "completion" and result.limit is not None]
    for at, result in enumerate(counts):
        if result.limit and _value(result.limit) not in (expected if at else {once * len(case.steps)}):
            planned = f"{once} in each of {len(case.steps)} steps"
            yield f"completion plans {result.limit.text} launches, but its case has {planned}"


def _fails(result: Result) -> str:
    """Why a result that is written `pass` did not pass, in words; empty where it did."""
    if result.differences or (result.largest and result.check != "relation"):
        return "it lists differences"
    if result.measured is None or result.limit is None:
        return ""
    measured, limit = _value(result.measured), _value(result.limit)
    reasons = {
        f"measured {result.measured.text} is not within {result.limit.text}": not measured <= limit,
        f"{measured:g} of {limit:g} launches were seen": result.check == "completion" and not measured == limit >= 1,
        f"it counts {measured:g}": result.check in _COUNTED and measured != 0,
        "a text is not that of its bits": any(f"{_value(f):.6g}" != f.text for f in (result.measured, result.limit)),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _value(figure: Figure) -> float:
    try:
        return float(struct.unpack(">d", bytes.fromhex(figure.bits))[0])
    except (ValueError, struct.error):
        return math.nan
