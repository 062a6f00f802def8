"""What sanitizers found: findings, canaries, verdicts, and the record of one session."""

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
from audit.records.kind import PLAN, Draft, Headline, Kind
from audit.records.machine import Machine
from audit.spec import Case

SCHEMA = 1
Tool = Literal["memcheck", "racecheck", "synccheck", "initcheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck", "initcheck")
Severity = Literal["error", "warning"]


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One access that takes part in a finding. `threads`, `blocks`: ranges of those that took part, `(0..31,0,0)`."""

    what: str  # write, read, barrier, allocation ... with its size where it is told: `read of 4 bytes`
    function: str = ""
    file: str = ""  # relative to the project
    line: int = 0  # 0: not told
    threads: str = ""
    blocks: str = ""


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a sanitizer reports, equal reports of other threads and blocks collapsed into it."""

    tool: Tool
    kind: str  # out-of-bounds, misaligned, race, divergent-barrier, uninitialised, leak, api-error ...
    severity: Severity
    kernel: str
    message: str  # the tool's own sentence
    sides: tuple[Side, ...]  # of a race both, the later access first
    count: int  # reports collapsed into this one
    raw: str  # the first of them, as the tool wrote it
    suppressed: str = ""  # the name of the rule that suppresses it


class Observed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one run of a tool over one target showed, before any verdict."""

    command: tuple[str, ...]
    exit_code: int | None  # None: killed at its limit
    complete: bool  # the summary is there and well formed, or the target said that it is done
    reported: int | None  # findings by the tool's own summary; None where it has none
    findings: tuple[Finding, ...]
    troubles: tuple[
        str, ...
    ]  # lines that say disabled, skipped, overflowed, internal error, not supported, not attached
    launches: int  # launches of the audited entry points that ran to their end
    seconds: float  # of a run that was killed its limit


class Canary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A planted fault and its clean twin, run by the same command line in the same session."""

    name: str
    tool: Tool
    found: bool  # the planted fault, of its own kind and at its own line
    twin_clean: bool
    detail: str


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool over one variant in one case."""

    tool: Tool
    variant: str
    case: str
    verdict: Verdict
    reason: str  # in a sentence; of inconclusive: what was missing
    findings: tuple[Finding, ...]
    launches: int
    planned_launches: int
    seconds: float
    build: str | None  # key into `builds`


class Suppression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that is known and accepted: `rule` names its tool, kind, and where it lies."""

    name: str
    tool: Tool
    kind: str
    where: str  # kernel or file:line that must occur in the finding
    reason: str
    expires: str  # ISO date
    used: int = 0
    device: Literal["", "host", "cuda"] = ""  # whose tool it is about; empty: both


class ToolRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool as it was used."""

    tool: Tool
    by: str  # `compute-sanitizer 2025.3.1`, `ThreadSanitizer, g++ 12.2.0`
    options: tuple[str, ...]
    gaps: str  # what it cannot see, in a sentence


class SanitizePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be run, recorded first."""

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
        """How many times a tool runs over a variant in a case."""
        return len(self.tools) * len(self.variants) * len(self.cases)


class SanitizeSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict over all, with its counts."""

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
    reasons: tuple[str, ...]  # of a verdict that is not pass


class SanitizeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one session."""

    schema: int
    kind: Literal["sanitize"]
    tool: str
    started: str
    command: str
    commit: str | None
    plan: SanitizePlan
    machine: Machine
    tools: tuple[ToolRecord, ...]
    builds: dict[str, BuildIdentity]
    canaries: tuple[Canary, ...]
    checked: tuple[Checked, ...]
    suppressions: tuple[Suppression, ...]
    summary: SanitizeSummary


def draft(runs: Path, plan: SanitizePlan) -> Draft:
    """The folder of a session in the making: the plan stands in it before anything runs."""
    return Draft(runs, KIND, f"sanitize-{plan.shape}", {PLAN: plan})


def told(finding: Finding) -> str:
    """A finding in a line: what, in which kernel, where."""
    places = " and ".join(f"{side.file}:{side.line}" for side in finding.sides if side.line)
    return f"{finding.kind} in {finding.kernel or 'no kernel'}{', ' + places if places else ''}: {finding.message}"


def unproven(tool: Tool, canaries: Sequence[Canary]) -> tuple[str, ...]:
    """Why a tool's silence proves nothing in this session: what its canaries lack."""
    own = [canary for canary in canaries if canary.tool == tool]
    if not own:
        return (f"no canary of {tool} ran in this session",)
    missed = [one for one in own if not one.found]
    noisy = [one for one in own if one.found and not one.twin_clean]
    said = [("did not find the canary", missed), ("did not pass the clean twin of", noisy)]
    return tuple(
        f"{tool} {what} {ones[0].name}{f' and {len(ones) - 1} more' if len(ones) > 1 else ''}: {ones[0].detail}"
        for what, ones in said
        if ones
    )


def summarize(
    plan: SanitizePlan,
    checked: Iterable[Checked],
    canaries: Iterable[Canary],
    complaints: tuple[str, ...],
    seconds: float,
) -> SanitizeSummary:
    """The verdict over a session: a finding, or a suppression that is no longer true, outweighs all; whatever was
    planned and did not prove clean is inconclusive."""
    checked, canaries = tuple(checked), tuple(canaries)
    count = {verdict: sum(one.verdict == verdict for one in checked) for verdict in ("pass", "fail", "inconclusive")}
    whole = len(checked) == plan.checks > 0
    verdicts: list[Verdict] = [one.verdict for one in checked]
    if complaints:
        verdicts.append("fail")
    if not whole:
        verdicts.append("inconclusive")
    reasons = dict.fromkeys(one.reason for one in checked if one.verdict != "pass")
    return SanitizeSummary(
        verdict=worst(verdicts),
        planned=plan.checks,
        ran=sum(one.launches > 0 for one in checked),
        clean=count["pass"],
        failed=count["fail"],
        inconclusive=plan.checks - count["pass"] - count["fail"],
        canaries=len(canaries),
        canaries_found=sum(canary.found and canary.twin_clean for canary in canaries),
        launches=sum(one.launches for one in checked),
        seconds=seconds,
        reasons=(*complaints, *reasons),
    )


def counted(rules: Iterable[Suppression], findings: Iterable[Finding]) -> tuple[Suppression, ...]:
    """The rules, each with the number of findings of the whole session that it suppressed."""
    names = [finding.suppressed for finding in findings]
    return tuple(msgspec.structs.replace(rule, used=names.count(rule.name)) for rule in rules)


def complaints(
    rules: Sequence[Suppression], today: date, ran: Collection[Tool], *, narrowed: bool = False
) -> tuple[str, ...]:
    """Why counted rules make a session fail, a sentence each.

    Whether a rule is unused can only be told where its tool `ran`, over all that is planned by default: not if the
    session was `narrowed` to some variants or cases.
    """
    found = []
    for rule in rules:
        if expired(rule, today):
            found.append(
                f"suppression {rule.name!r} expired on {rule.expires}: mend what it suppresses, or give it a new date "
                f"and reason in [tool.{TABLE}]"
            )
        elif rule.used == 0 and rule.tool in ran and not narrowed:
            found.append(
                f"suppression {rule.name!r} matched nothing ({rule.tool}, {rule.kind}, {rule.where}): remove it from "
                f"[tool.{TABLE}]"
            )
    return tuple(found)


def expired(rule: Suppression, today: date) -> bool:
    """A rule holds through its last day."""
    return date.fromisoformat(rule.expires) < today


def _lacks(record: SanitizeRecord) -> Iterator[str]:
    missing = Counter(_planned(record.plan)) - Counter(map(_which, record.checked))
    yield from (f"{tool} was planned for {variant} in {case}" for tool, variant, case in missing)


def _disagrees(record: SanitizeRecord, files: Mapping[str, bytes]) -> Iterator[str]:
    if derive.differs(files[PLAN], record.plan, SanitizePlan):
        yield f"{PLAN} is not the plan that the record holds"
    extra = Counter(map(_which, record.checked)) - Counter(_planned(record.plan))
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
    recounted = counted(record.suppressions, (f for one in record.checked for f in one.findings))
    if recounted != record.suppressions:
        yield "the suppressions do not count the findings that they suppress"
    started = datetime.fromisoformat(record.started)
    tools = tuple(tool.tool for tool in record.tools)
    days = sorted({started.date(), (started + timedelta(seconds=record.summary.seconds)).date()})
    derived = [
        summarize(
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


def _which(one: Checked) -> tuple[str, str, str]:
    return one.tool, one.variant, one.case


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
    schemas=(SCHEMA,),
    beside=(PLAN,),
    lacks=_lacks,
    disagrees=_disagrees,
    headline=_headline,
    page="audit.report.sanitize_page",
)
