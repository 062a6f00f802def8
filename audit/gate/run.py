"""The evidence that a policy needs: what can run here is run, the rest is read from retained records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from audit.backends import cuda
from audit.errors import CaptureError, EvidenceError, PlanError, ToolMissing
from audit.gate import baseline, coverage
from audit.gate.coverage import AnyWitness, Coverage
from audit.gate.decision import decide
from audit.gate.formats.html import html, links_from
from audit.gate.policy import AuditRule, Policy, SanitizeRule, allowed_signers, baseline_path, load_policy
from audit.gate.verdict import Gate
from audit.project import Project
from audit.records.signature import require_signers
from audit.records.verify import Verification, find_records, verify
from audit.report import pages, write_page
from audit.run import run
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.sanitize.session import sanitize

_CANARY_LIMIT = 60.0  # seconds
_NOT_IN_NAMES = re.compile(r"[^\w.-]")


def gate(
    project: Project,
    name: str,
    *,
    given: Sequence[Path] = (),
    may_run: bool = True,
    runs: Path | None = None,
    command: str = "audit gate",
    log: Callable[[str], None] = lambda _: None,
) -> Gate:
    """The verdict of the policy of that name.

    Evidence that is `given` (folders, or folders of folders) stands for what would be run. Else each rule for the host
    is run, and each rule for a GPU that no retained evidence covers with today's sources, where there is a GPU; nothing
    is run where `may_run` is false. Records of these runs go to `runs`, and a page of the verdict beside them. Raises
    ProjectError for a policy or baseline that cannot be read, ToolMissing where nothing can be built here.
    """
    began = datetime.now(UTC)
    policy, accepted = load_policy(project, name), baseline.load_baseline(project)
    if (signers := allowed_signers(project, policy)) is not None:
        require_signers(signers)
    evidence = [verify(home, project, signers) for folder in policy.retained for home in _below(project.root / folder)]
    known = {one.path.resolve() for one in evidence}
    evidence += [
        verify(home, project, signers) for path in given for home in _given(path) if home.resolve() not in known
    ]
    may_run = may_run and not given
    runner = _Runner(project, evidence, runs or (project.own_runs() if may_run else project.runs), command, log)
    fresh = [verify(path, project) for path in runner.run(policy)] if may_run else []
    verdict = decide(
        project,
        name,
        policy,
        [*evidence, *fresh],
        accepted,
        started=began.isoformat(timespec="seconds"),
        today=began.date(),
        baseline_file=baseline_path(project) or "",
    )
    if fresh:
        page = runner.runs / f"gate-{began:%Y%m%dT%H%M%SZ}-{_NOT_IN_NAMES.sub('_', name)}.html"
        write_page(page, {page.name: html(verdict, links_from(page.parent, project.root)).encode()})
        log(f"page of the gate: {page}")
    return verdict


@dataclass(frozen=True)
class _Runner:
    """Runs those rules of a policy that can run here and that the evidence at hand does not cover."""

    project: Project
    evidence: Sequence[Verification]
    runs: Path
    command: str
    log: Callable[[str], None]

    def run(self, policy: Policy) -> Iterator[Path]:
        """The folder of each record that is made. What cannot be planned is left for the decision to report."""
        rules: tuple[AuditRule | SanitizeRule, ...] = (*policy.audits, *policy.sanitizers)
        for rule in rules:
            for shape in rule.shapes:
                if rule.device == "cuda" and not _has_gpu():
                    continue
                try:
                    path = self._audit(rule, shape) if isinstance(rule, AuditRule) else self._sanitize(rule, shape)
                except (PlanError, CaptureError) as error:
                    self.log(f"{shape} on {rule.device}: {error}")
                    continue
                if path is not None:
                    yield path

    def _audit(self, rule: AuditRule, shape: str) -> Path | None:
        plan = rule.plan(self.project, shape)
        if rule.device == "cuda" and _current(
            coverage.audits(plan, self.project.operators[plan.operator], self.evidence)
        ):
            return None
        self.log(f"audit of {shape} on {rule.device}: {plan.audits} planned")
        record, path = run(self.project, plan, self.runs, self.command)
        summary = record.summary
        self.log(f"{summary.verdict}: {summary.passed} of {plan.audits} passed in {summary.seconds} s")
        return path

    def _sanitize(self, rule: SanitizeRule, shape: str) -> Path | None:
        plan = rule.plan(self.project, shape)
        covered = (_current(coverage.checks(plan, tool, self.evidence)) for tool in plan.tools)
        if rule.device == "cuda" and all(covered):
            return None
        self.log(f"sanitizers of {shape} on {rule.device}: {plan.checks} planned")
        engine: Engine = (
            DeviceEngine(None, _CANARY_LIMIT) if rule.device == "cuda" else HostEngine(rule.arch, _CANARY_LIMIT)
        )
        record, path = sanitize(self.project, plan, engine, self.runs, self.command, pages)
        summary = record.summary
        self.log(f"{summary.verdict}: {summary.clean} of {plan.checks} clean in {summary.seconds} s")
        return path


def _current(covered: Coverage[AnyWitness]) -> bool:
    """Whether evidence of today's sources speaks for all that a plan asks for."""
    return all(witness is not None and witness.current and not witness.lacks for witness in covered.values())


def _has_gpu() -> bool:
    try:
        cuda.require_device()
    except ToolMissing:
        return False
    return True


def _below(folder: Path) -> tuple[Path, ...]:
    """The records below a folder of retained evidence; none where the folder does not exist yet."""
    return tuple(home for home in find_records(folder) if home != folder) if folder.is_dir() else ()


def _given(path: Path) -> tuple[Path, ...]:
    if not path.exists():
        raise EvidenceError(
            f"--evidence: expected a folder of evidence, but {path} does not exist; `audit run` prints "
            f"the folder that it writes"
        )
    return find_records(path)
