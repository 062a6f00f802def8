"""The tables of a report, computed from evidence."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from audit.checks.result import Figure, Result
from audit.compile.identity import BuildIdentity, CodeRecord, KernelRecord
from audit.metrics import Metric
from audit.records.run import Audit, RunRecord
from audit.spec import Case


class Row(msgspec.Struct, frozen=True):
    """One case of the matrix: a cell for each variant, None where it did not run."""

    case: Case
    cells: tuple[Audit | None, ...]


class ErrorRow(msgspec.Struct, frozen=True):
    """The most demanding step of one bound for one variant in one case."""

    case: str
    variant: str
    bound: str
    result: Result
    used: float  # the share of the limit that was used; infinity where there is no room at all


def matrix(evidence: RunRecord) -> list[Row]:
    """Cases x variants as planned, failed rows first; what did not run is None."""
    ran = {(audit.case, audit.variant): audit for audit in evidence.audits}
    rows = [
        Row(case, tuple(ran.get((case.id, variant.label)) for variant in evidence.plan.variants))
        for case in evidence.plan.cases
    ]
    return sorted(rows, key=lambda row: min(_rank(cell) for cell in row.cells))


def error_table(evidence: RunRecord) -> list[ErrorRow]:
    """For each case, variant and bound the step that uses most of its limit, the most demanding first."""
    found: dict[tuple[str, str, str], ErrorRow] = {}
    for audit in evidence.audits:
        for result in audit.results:
            check, _, bound = result.check.partition(":")
            if check != "error" or result.measured is None or result.limit is None:
                continue
            row = ErrorRow(audit.case, audit.variant, bound, result, used(result.measured, result.limit))
            key = (audit.case, audit.variant, bound)
            if key not in found or not row.used <= found[key].used:
                found[key] = row
    return sorted(found.values(), key=lambda row: -row.used)


class VacuityRow(msgspec.Struct, frozen=True):
    """One mutation: how many cases it could show in, and which checks caught it in how many of them."""

    mutation: str
    applied: int
    caught: int
    by: dict[str, int]


def vacuity(evidence: RunRecord) -> list[VacuityRow]:
    """The mutations of the plan, those that nothing caught first."""
    rows = []
    for name in dict.fromkeys(exposure.mutation for exposure in evidence.exposures):
        mine = [exposure for exposure in evidence.exposures if exposure.mutation == name and exposure.applies]
        by = Counter(check for exposure in mine for check in exposure.caught_by)
        rows.append(VacuityRow(name, len(mine), sum(bool(e.caught_by) for e in mine), dict(by.most_common())))
    return sorted(rows, key=lambda row: row.caught > 0)


class ProbeRow(msgspec.Struct, frozen=True):
    """One probe for one variant in one case."""

    case: str
    variant: str
    probe: str
    result: Result


def probes(evidence: RunRecord) -> list[ProbeRow]:
    """Every result of a probe, those that did not pass first."""
    found = [
        ProbeRow(audit.case, audit.variant, result.check.partition(":")[2], result)
        for audit in evidence.audits
        for result in audit.results
        if result.check.startswith("probe:")
    ]
    return sorted(found, key=lambda row: row.result.verdict == "pass")


class MetricRow(msgspec.Struct, frozen=True):
    """One case, variant and array: the step with the largest relative error."""

    case: str
    variant: str
    metric: Metric


def metric_rows(evidence: RunRecord) -> list[MetricRow]:
    """Errors in numbers: for each case, variant and array the step with the largest relative L2, the largest first."""
    found: dict[tuple[str, str, str], MetricRow] = {}
    for audit in evidence.audits:
        for metric in audit.metrics:
            key = (audit.case, audit.variant, metric.name)
            if key not in found or not metric.relative_l2.value <= found[key].metric.relative_l2.value:
                found[key] = MetricRow(audit.case, audit.variant, metric)
    return sorted(found.values(), key=lambda row: _smallness(row.metric.relative_l2.value))


class BuildRow(msgspec.Struct, frozen=True):
    """One cubin: its record, what ptxas says of each kernel, and what the launches ask for on top."""

    key: str
    build: BuildIdentity
    code: CodeRecord
    kernels: tuple[tuple[KernelRecord, int | None], ...]  # with the dynamic shared memory of a block, bytes, the most


def build_rows(evidence: RunRecord) -> list[BuildRow]:
    """The cubins of a run; none where it executed on the host, or where older evidence does not describe them."""
    asked: dict[tuple[str, str], int] = {}
    for audit in evidence.audits:
        for entry, size in audit.dynamic_shared.items():
            key = (audit.build or "", entry)
            asked[key] = max(size, asked.get(key, 0))
    return [
        BuildRow(
            key, build, build.code, tuple((kernel, asked.get((key, kernel.entry))) for kernel in build.code.kernels)
        )
        for key, build in evidence.builds.items()
        if build.code is not None
    ]


def arithmetic(evidence: RunRecord) -> list[str]:
    """What the compilers were allowed to do to the arithmetic: one sentence where all builds agree, else with the
    builds that each is about."""
    builds: dict[str, list[str]] = {}
    for key, build in evidence.builds.items():
        if build.contracted is not None:
            fused = "may be fused (-fmad=true)" if build.contracted else "stay apart (-fmad=false)"
            fast = "; --use_fast_math, of which a CPU models no more" if build.fast_math else ""
            builds.setdefault(f"a product and a sum {fused}{fast}", []).append(key)
    return list(builds) if len(builds) == 1 else [f"{', '.join(keys)}: {what}" for what, keys in builds.items()]


def used(measured: Figure, limit: Figure) -> float:
    """The share of a limit that is used; infinity where there is no room at all, or where nothing is a number."""
    error, bound = measured.value, limit.value
    if error == 0:
        return 0.0
    return error / bound if bound > 0 and error >= 0 else float("inf")


def _smallness(error: float) -> float:
    return -error if error >= 0 else -math.inf


def _rank(cell: Audit | None) -> int:
    return 1 if cell is None else {"fail": 0, "inconclusive": 1, "pass": 2}[cell.verdict]


class NoteRow(msgspec.Struct, frozen=True):
    """What was seen of a variant and not judged; `case` is the first of its cases in which it was."""

    variant: str
    check: str
    detail: str
    case: str
    times: int


def note_rows(evidence: RunRecord) -> list[NoteRow]:
    """Each note of each variant once, with the number of its steps and cases; the most frequent last."""
    seen: dict[tuple[str, str, str], list[str]] = {}
    for audit in evidence.audits:
        for note in audit.notes:
            seen.setdefault((audit.variant, note.check, note.detail), []).append(audit.case)
    rows = [NoteRow(*key, cases[0], len(cases)) for key, cases in seen.items()]
    return sorted(rows, key=lambda row: row.times)
