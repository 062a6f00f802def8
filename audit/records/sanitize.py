"""The record of one session of sanitizers: findings, canaries and verdicts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from audit.checks.result import Verdict, worst
from audit.compile.identity import BuildIdentity
from audit.project import TABLE
from audit.records import derive
from audit.records.closure import Closure
from audit.records.kind import PLAN, Draft, Headline, Kind
from audit.records.machine import MachineRecord
from audit.records.resolution import ResolvedCase
from audit.spec import Case

SCHEMA = 3
OLDER = (1, 2)
"""Versions that are still read. Schema 2 added what decided the verdicts beside the CUDA sources, schema 3 what the
declaration resolves to."""
Tool = Literal["memcheck", "racecheck", "synccheck", "initcheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck", "initcheck")
Severity = Literal["error", "warning"]


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One access of a finding. `threads` and `blocks` are ranges of coordinates: `(0..31,0,0)`."""

    what: str  # write, read, barrier, allocation ... with its size if known: `read of 4 bytes`
    function: str = ""
    file: str = ""  # relative to the project
    line: int = 0  # 0: unknown
    threads: str = ""
    blocks: str = ""


class ToolFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding of a sanitizer. Equal reports of other threads and blocks are collapsed into it."""

    tool: Tool
    kind: str  # out-of-bounds, misaligned, race, divergent-barrier, uninitialised, leak, api-error ...
    severity: Severity
    kernel: str
    message: str  # the tool's own text
    sides: tuple[Side, ...]  # both sides of a race, the later access first
    count: int  # the number of collapsed reports
    raw: str  # the first report, as the tool wrote it
    suppressed: str = ""  # the name of the rule that suppresses it, if any


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The output of one run of a tool over one target, before any verdict."""

    command: tuple[str, ...]
    exit_code: int | None  # None: killed at its limit
    complete: bool  # the summary exists and is well formed, or the target reported `done`
    reported: int | None  # the count in the tool's own summary; None without one
    findings: tuple[ToolFinding, ...]
    troubles: tuple[
        str, ...
    ]  # lines about something disabled, skipped, overflowed or unsupported, about an internal error, or unknown lines
    launches: int  # completed launches of the audited entry points
    seconds: float  # the limit, if the run was killed
    notes: tuple[str, ...] = ()  # what the tool saw and does not judge


class Canary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A planted fault and its clean twin, run with the same command line in the same session."""

    name: str
    tool: Tool
    found: bool  # whether the tool found the planted fault, with its kind and line
    twin_clean: bool
    detail: str


class ToolCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool's run over one variant in one case."""

    tool: Tool
    variant: str
    case: str
    verdict: Verdict
    reason: str  # one sentence; for inconclusive: what was missing
    findings: tuple[ToolFinding, ...]
    launches: int
    planned_launches: int
    seconds: float
    build: str | None  # key into `builds`


class Suppression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule about a known and accepted finding: its tool, kind and kernel or source line."""

    name: str
    tool: Tool
    kind: str
    where: str  # the finding's kernel, or file:line of one of its sides
    reason: str
    expires: str  # ISO date
    used: int = 0
    device: Literal["", "host", "cuda"] = ""  # the backend that it concerns; empty: both


class ToolRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool in a session: its version, options and gaps."""

    tool: Tool
    by: str  # `compute-sanitizer 2025.3.1`, `ThreadSanitizer, g++ 12.2.0`
    options: tuple[str, ...]
    gaps: str  # the faults that it cannot find, in a sentence


class SanitizePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan of a session, recorded before anything runs."""

    shape: str
    operator: str
    backend: Literal["host", "cuda"]
    tools: tuple[Tool, ...]
    variants: tuple[str, ...]
    cases: tuple[Case, ...]
    time_limit: float  # seconds, for one tool over one variant in one case
    pruned: bool

    @property
    def checks(self) -> int:
        """The number of checks: one for each tool, variant and case."""
        return len(self.tools) * len(self.variants) * len(self.cases)


class SanitizeSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict over a session, with its counts."""

    verdict: Verdict
    planned: int
    ran: int
    clean: int
    failed: int
    inconclusive: int
    canaries: int
    canaries_found: int
    launches: int
    seconds: float
    reasons: tuple[str, ...]  # for a verdict other than pass


class SanitizeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one session."""

    schema: int
    kind: Literal["sanitize"]
    tool: str
    started: str
    command: str
    commit: str | None
    plan: SanitizePlan
    machine: MachineRecord
    tools: tuple[ToolRecord, ...]
    builds: dict[str, BuildIdentity]
    canaries: tuple[Canary, ...]
    checked: tuple[ToolCheck, ...]
    suppressions: tuple[Suppression, ...]
    summary: SanitizeSummary
    closure: Closure | None = None  # what decided it beside the sources; records of older versions have none


def session_cases(plan: SanitizePlan) -> tuple[ResolvedCase, ...]:
    """The cases of a plan with their variants."""
    return tuple(ResolvedCase(case, plan.variants, plan.backend == "cuda") for case in plan.cases)


def draft(runs: Path, plan: SanitizePlan) -> Draft:
    """The unfinished folder of a session, with its plan."""
    return Draft(runs, KIND, f"sanitize-{plan.shape}", {PLAN: plan})


def describe_finding(finding: ToolFinding) -> str:
    """A finding in one line: kind, kernel, source lines and message."""
    lines = " and ".join(f"{side.file}:{side.line}" for side in finding.sides if side.line)
    return f"{finding.kind} in {finding.kernel or 'no kernel'}{', ' + lines if lines else ''}: {finding.message}"


def unproven(tool: Tool, canaries: Sequence[Canary]) -> tuple[str, ...]:
    """The reasons why a tool's silence proves nothing in this session: its canaries that failed."""
    own = [canary for canary in canaries if canary.tool == tool]
    if not own:
        return (f"no canary of {tool} ran in this session",)
    missed = [canary for canary in own if not canary.found]
    noisy = [canary for canary in own if canary.found and not canary.twin_clean]
    failures = [("did not find the canary", missed), ("did not pass the clean twin of", noisy)]
    return tuple(
        f"{tool} {what} {failed[0].name}{f' and {len(failed) - 1} more' if len(failed) > 1 else ''}: {failed[0].detail}"
        for what, failed in failures
        if failed
    )


def summarize_session(
    plan: SanitizePlan,
    checked: Iterable[ToolCheck],
    canaries: Iterable[Canary],
    complaints: tuple[str, ...],
    seconds: float,
) -> SanitizeSummary:
    """The verdict over a session. A finding or a complaint about a suppression outweighs everything else. A planned
    check that was not proven clean is inconclusive."""
    checked, canaries = tuple(checked), tuple(canaries)
    count = {verdict: sum(each.verdict == verdict for each in checked) for verdict in ("pass", "fail", "inconclusive")}
    complete = len(checked) == plan.checks > 0
    verdicts: list[Verdict] = [check.verdict for check in checked]
    if complaints:
        verdicts.append("fail")
    if not complete:
        verdicts.append("inconclusive")
    reasons = dict.fromkeys(check.reason for check in checked if check.verdict != "pass")
    return SanitizeSummary(
        verdict=worst(verdicts),
        planned=plan.checks,
        ran=sum(check.launches > 0 for check in checked),
        clean=count["pass"],
        failed=count["fail"],
        inconclusive=plan.checks - count["pass"] - count["fail"],
        canaries=len(canaries),
        canaries_found=sum(canary.found and canary.twin_clean for canary in canaries),
        launches=sum(check.launches for check in checked),
        seconds=seconds,
        reasons=(*complaints, *reasons),
    )


def counted(rules: Iterable[Suppression], findings: Iterable[ToolFinding]) -> tuple[Suppression, ...]:
    """The rules, each with the number of findings in the session that it suppressed."""
    names = [finding.suppressed for finding in findings]
    return tuple(msgspec.structs.replace(rule, used=names.count(rule.name)) for rule in rules)


def complaints(
    rules: Sequence[Suppression], today: date, ran: Collection[Tool], *, narrowed: bool = False
) -> tuple[str, ...]:
    """A sentence for each counted rule that makes a session fail.

    A rule counts as unused only if its tool `ran` over the default plan, and the session was not `narrowed` to some
    variants or cases. Records keep these sentences and verification derives them again, so their text must not change.
    """
    objections = []
    for rule in rules:
        if expired(rule, today):
            objections.append(
                f"suppression {rule.name!r} expired on {rule.expires}: mend what it suppresses, or give it a new date "
                f"and reason in [tool.{TABLE}]"
            )
        elif rule.used == 0 and rule.tool in ran and not narrowed:
            objections.append(
                f"suppression {rule.name!r} matched nothing ({rule.tool}, {rule.kind}, {rule.where}): remove it from "
                f"[tool.{TABLE}]"
            )
    return tuple(objections)


def expired(rule: Suppression, today: date) -> bool:
    """Whether a rule has expired. It is valid through its last day."""
    return date.fromisoformat(rule.expires) < today


def _lacks(record: SanitizeRecord) -> Iterator[str]:
    missing = Counter(_planned(record.plan)) - Counter(map(_key, record.checked))
    yield from (f"{tool} was planned for {variant} in {case}, and has no result" for tool, variant, case in missing)


def _disagrees(record: SanitizeRecord, files: Mapping[str, bytes]) -> Iterator[str]:
    if derive.differs(files[PLAN], record.plan, SanitizePlan):
        yield f"{PLAN} differs from the plan in the record"
    extra = Counter(map(_key, record.checked)) - Counter(_planned(record.plan))
    yield from (f"{tool} over {variant} in {case} was not planned" for tool, variant, case in extra)
    for check in record.checked:
        where = f"{check.tool} over {check.variant} in {check.case}: recorded as {check.verdict}"
        open_ = [finding for finding in check.findings if not finding.suppressed]
        if (check.verdict == "fail") != bool(open_) and check.build is not None:
            yield f"{where}, but it has {len(open_)} findings that are not suppressed"
        if check.verdict == "pass" and (doubts := unproven(check.tool, record.canaries)):
            yield f"{where}, but {'; '.join(doubts)}"
        if check.verdict == "pass" and (check.launches != check.planned_launches or check.launches < 1):
            yield f"{where}, but {check.launches} of {check.planned_launches} launches completed"
        if check.build is not None and check.build not in record.builds:
            yield f"{where}; its build {check.build} is not recorded"
    recounted = counted(record.suppressions, (f for check in record.checked for f in check.findings))
    if recounted != record.suppressions:
        yield "the counts of the suppressions differ from the findings that they suppress"
    started = datetime.fromisoformat(record.started)
    tools = tuple(tool.tool for tool in record.tools)
    days = sorted({started.date(), (started + timedelta(seconds=record.summary.seconds)).date()})
    derived = [
        summarize_session(
            record.plan,
            record.checked,
            record.canaries,
            complaints(record.suppressions, day, tools, narrowed=record.plan.pruned),
            record.summary.seconds,
        )
        for day in days
    ]
    if record.summary not in derived:
        yield from derive.fields("summary", record.summary, derived[0])


def _planned(plan: SanitizePlan) -> list[tuple[str, str, str]]:
    return [
        (tool, variant, case.id) for tool, variant, case in itertools.product(plan.tools, plan.variants, plan.cases)
    ]


def _key(check: ToolCheck) -> tuple[str, str, str]:
    return check.tool, check.variant, check.case


def _headline(record: SanitizeRecord) -> Headline:
    plan, summary = record.plan, record.summary
    counts = (
        f"{summary.clean} of {summary.planned} clean, {summary.canaries_found} of {summary.canaries} canaries found"
    )
    problem = next(iter(summary.reasons), "")
    return Headline(plan.operator, plan.shape, plan.backend, summary.verdict, counts, problem)


KIND = Kind(
    name="sanitize",
    title="a session of sanitizers",
    file="sanitize.json",
    record=SanitizeRecord,
    schemas=(SCHEMA, *OLDER),
    beside=(PLAN,),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.sanitize_page",
    resolved_cases=lambda record: session_cases(record.plan),
)
