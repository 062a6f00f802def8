"""Bringing together what a policy needs: what can run here is run, what cannot is looked up and verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from audit.backends import cuda
from audit.errors import CaptureError, EvidenceError, PlanError, ToolMissing
from audit.gate import baseline, coverage
from audit.gate.evaluate import evaluate
from audit.gate.policy import AuditRule, Policy, SanitizeRule, baseline_path, load
from audit.gate.verdict import Gate
from audit.project import Project
from audit.records.verify import Verified, find, verify
from audit.report import pages
from audit.run import run
from audit.sanitize.device.engine import DeviceEngine
from audit.sanitize.engine import Engine
from audit.sanitize.host.engine import HostEngine
from audit.sanitize.session import sanitize

_CANARY_LIMIT = 60.0  # seconds


def gate(
    project: Project,
    name: str,
    *,
    given: Sequence[Path] = (),
    may_run: bool = True,
    runs: Path | None = None,
    command: str = "audit gate",
    say: Callable[[str], None] = lambda _: None,
) -> Gate:
    """The verdict of the policy of that name.

    Evidence that is `given` (folders, or folders of folders) stands for what would be run. Else each rule for the host
    is run, and each for a GPU that no retained evidence covers with today's sources, where there is one; not where
    `may_run` is false. Evidence of these runs goes to `runs`. Raises ProjectError for a policy or baseline that cannot
    be read, ToolMissing where nothing can be built here.
    """
    began = datetime.now(UTC)
    policy, accepted = load(project, name), baseline.load(project)
    evidence = [verify(home, project) for place in policy.retained for home in _below(project.root / place)]
    known = {one.path.resolve() for one in evidence}
    evidence += [verify(home, project) for path in given for home in _named(path) if home.resolve() not in known]
    if may_run and not given:
        evidence += _run(project, policy, evidence, runs or project.runs, command, say)
    return evaluate(
        project,
        name,
        policy,
        evidence,
        accepted,
        started=began.isoformat(timespec="seconds"),
        today=began.date(),
        baseline_file=baseline_path(project) or "",
    )


def _run(
    project: Project,
    policy: Policy,
    evidence: Sequence[Verified],
    runs: Path,
    command: str,
    say: Callable[[str], None],
) -> list[Verified]:
    """Evidence of every rule that can and need be run; what cannot be planned is left to the evaluation to tell."""
    made = []

    def make(rule: AuditRule | SanitizeRule, shape: str) -> Path | None:
        if isinstance(rule, AuditRule):
            return _audit(project, rule, shape, evidence, runs, command, say)
        return _sanitize(project, rule, shape, evidence, runs, command, say)

    rules: tuple[AuditRule | SanitizeRule, ...] = (*policy.audits, *policy.sanitizers)
    for rule in rules:
        for shape in rule.shapes:
            if rule.device == "cuda" and not _device():
                continue
            try:
                path = make(rule, shape)
            except (PlanError, CaptureError) as error:
                say(f"{shape} on {rule.device}: {error}")
                continue
            if path is not None:
                made.append(verify(path, project))
    return made


def _audit(
    project: Project,
    rule: AuditRule,
    shape: str,
    evidence: Sequence[Verified],
    runs: Path,
    command: str,
    say: Callable[[str], None],
) -> Path | None:
    plan = rule.plan(project, shape)
    spoken = coverage.audits(plan, evidence).values()
    if rule.device == "cuda" and all(one is not None and one.current for one in spoken):
        return None
    say(f"audit of {shape} on {rule.device}: {plan.audits} planned")
    found, path = run(project, plan, runs, command)
    say(f"{found.summary.verdict}: {found.summary.passed} of {plan.audits} passed in {found.summary.seconds} s")
    return path


def _sanitize(
    project: Project,
    rule: SanitizeRule,
    shape: str,
    evidence: Sequence[Verified],
    runs: Path,
    command: str,
    say: Callable[[str], None],
) -> Path | None:
    plan = rule.plan(project, shape)
    spoken = [one for tool in plan.tools for one in coverage.checks(plan, tool, evidence).values()]
    if rule.device == "cuda" and all(one is not None and one.current for one in spoken):
        return None
    say(f"sanitizers of {shape} on {rule.device}: {plan.checks} planned")
    engine: Engine = (
        DeviceEngine(None, _CANARY_LIMIT) if rule.device == "cuda" else HostEngine(rule.arch, _CANARY_LIMIT)
    )
    found, path = sanitize(project, plan, engine, runs, command, pages)
    say(f"{found.summary.verdict}: {found.summary.clean} of {plan.checks} clean in {found.summary.seconds} s")
    return path


def _device() -> bool:
    try:
        cuda.require_device()
    except ToolMissing:
        return False
    return True


def _below(place: Path) -> tuple[Path, ...]:
    """The evidence below a folder of retained evidence, none where there is none yet."""
    return tuple(home for home in find(place) if home != place) if place.is_dir() else ()


def _named(path: Path) -> tuple[Path, ...]:
    if not path.exists():
        raise EvidenceError(f"--evidence: expected a folder of evidence, but {path} does not exist")
    return find(path)
