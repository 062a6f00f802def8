"""What sanitizers found: findings, canaries, verdicts, and the record of one session."""

from __future__ import annotations

from typing import Literal

import msgspec

from audit.checks.result import Verdict
from audit.compile.identity import BuildIdentity
from audit.records.run import Machine
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


class SanitizeEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
