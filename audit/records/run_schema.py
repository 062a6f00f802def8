"""The schema of one audit run. Unknown fields are refused; `schema` says which version of this file wrote a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from audit.checks.result import Note, Result, Verdict
from audit.compile.identity import BuildIdentity
from audit.launch_record import LaunchRecord
from audit.metrics import Metric
from audit.plan import Plan
from audit.records.closure import Closure
from audit.records.machine import MachineRecord
from audit.spec import Case
from audit.vacuity import Exposure, OmissionShare, unseen

SCHEMA = 6
OLDER = (1, 2, 3, 4, 5)
"""Versions that are still read. Schema 2 added what the compiler says of a cubin, and what its launches ask for;
schema 3 where bytes differ, and how many elements lie how many ULP away; schema 4 by how much they differ, and which
launch arguments a plan cannot tell apart, and what decided the verdict beside the CUDA sources; schema 5 the launches,
and what the declaration resolves to; schema 6 relations, input families, and how inputs were converted."""
ARGUMENTS_SINCE = 4
LAUNCHES_SINCE = 5


class CaseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One case as it ran: what its inputs were and where they came from."""

    case: Case
    inputs_sha256: str
    capture_sha256: str | None
    steps: tuple[str, ...]
    omission_share: OmissionShare | None
    computed_by: dict[str, str] = {}  # reference -> library and device, of those that have a choice
    launches: dict[str, tuple[LaunchRecord, ...]] = {}  # variant -> its launches in each step
    converted: dict[str, str] = {}  # buffer -> how its input was converted: "f64 to f32, 99% of the elements rounded"
    left_out: dict[str, str] = {}  # input family -> why it did not run

    @property
    def families(self) -> tuple[str, ...]:
        """The input families that ran."""
        return tuple(name for name in self.case.families if name in self.steps and name not in self.left_out)


class Audit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant in one case: its verdict and every check's result."""

    case: str
    variant: str
    verdict: Verdict
    seconds: float
    results: tuple[Result, ...]
    metrics: tuple[Metric, ...]
    build: str | None  # key into `builds`
    dynamic_shared: dict[str, int] = {}  # entry -> bytes of shared memory a block that its launches ask for, the most
    notes: tuple[Note, ...] = ()  # observed, not judged
    launched_code: str = ""  # sha256 over the launches: machine code, configuration, arguments; older records lack it


class Summary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of audits (a variant in a case), and the verdict over all."""

    verdict: Verdict
    planned: int
    ran: int
    passed: int
    failed: int
    inconclusive: int
    seconds: float
    vacuous: tuple[str, ...] = ()  # mutations that no check could tell from the right result in any case
    indistinguishable: tuple[str, ...] = ()  # pairs of launch arguments that are equal in every case of a default plan


class RunRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one run."""

    schema: int
    tool: str
    started: str  # UTC, ISO 8601
    command: str
    commit: str | None
    plan: Plan
    machine: MachineRecord
    builds: dict[str, BuildIdentity]
    cases: tuple[CaseRecord, ...]
    audits: tuple[Audit, ...]
    exposures: tuple[Exposure, ...]
    summary: Summary
    closure: Closure | None = None  # what decided it beside sources and captures; records of older versions have none


def summarize_run(
    plan: Plan,
    audits: tuple[Audit, ...],
    exposures: tuple[Exposure, ...],
    seconds: float,
    indistinguishable: tuple[str, ...] = (),
) -> Summary:
    """The verdict over a run: a finding outweighs all; what was planned and did not run is inconclusive, and so is a
    plan in which no check can tell some wrong result from the right one."""
    count = {verdict: sum(audit.verdict == verdict for audit in audits) for verdict in ("pass", "fail", "inconclusive")}
    whole = len(audits) == plan.audits > 0
    vacuous = unseen(exposures, pruned=plan.pruned)
    sound = whole and not count["inconclusive"] and not vacuous and not indistinguishable
    verdict: Verdict = "fail" if count["fail"] else "pass" if sound else "inconclusive"
    return Summary(
        verdict,
        plan.audits,
        len(audits),
        count["pass"],
        count["fail"],
        plan.audits - count["pass"] - count["fail"],
        seconds,
        vacuous,
        indistinguishable,
    )


def same_code(audits: Sequence[Audit], variant: str, parent: str) -> bool:
    """Whether a variant launched, in every case that ran, exactly what its parent launched."""
    code = {(audit.case, audit.variant): audit.launched_code for audit in audits}
    mine = [(case, launched) for (case, name), launched in code.items() if name == variant]
    return bool(mine) and all(launched and launched == code.get((case, parent)) for case, launched in mine)


def same_sources(audits: Sequence[Audit], builds: Mapping[str, BuildIdentity], variant: str, parent: str) -> bool:
    """Whether both were built from files of the same contents."""
    return _contents(audits, builds, variant) == _contents(audits, builds, parent)


def _contents(audits: Sequence[Audit], builds: Mapping[str, BuildIdentity], variant: str) -> set[str]:
    """The digests of all files that a variant was built from."""
    used = {audit.build for audit in audits if audit.variant == variant}
    return {digest for key, build in builds.items() if key in used for digest in build.sources.values()}
