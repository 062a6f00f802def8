"""A softmax project with a policy, and evidence for it: audits really run on the host, the same as if a GPU had, and a
session of one sanitizer. `rewrite` makes whole evidence that says something else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import msgspec

from audit.case import audit_case
from audit.compile.identity import BuildIdentity
from audit.gate import baseline
from audit.gate.decision import decide
from audit.gate.policy import load_policy
from audit.gate.verdict import Condition, Gate
from audit.plan import Backend
from audit.project import Project, find_project
from audit.records import machine, sanitize
from audit.records import run as run_record
from audit.records import sanitize as sanitize_record
from audit.records.closure import closure_of
from audit.records.run import SCHEMA, RunRecord, summarize_run
from audit.records.sanitize import SCHEMA as SANITIZE_SCHEMA
from audit.records.sanitize import (
    Canary,
    SanitizeRecord,
    Side,
    Tool,
    ToolCheck,
    ToolFinding,
    ToolRecord,
    summarize_session,
)
from audit.records.verify import Verification, find_records, verify
from audit.sanitize import suppressions

from ..conftest import ROOT

STARTED = "2026-11-01T10:00:00+00:00"
TODAY = date(2026, 11, 2)
POLICY = """
[tool.kernel-audit]
kernels = "kernels"

[tool.kernel-audit.gate.everyday]
stale = "warn"

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["softmax"]
variants = ["control", "fast"]
axes = { n = [1, 33] }

[[tool.kernel-audit.gate.everyday.audits]]
shapes = ["softmax"]
device = "cuda"
variants = ["control", "fast"]
axes = { n = [1, 33] }
minimum = { cases = 2, mutations = 2 }

[[tool.kernel-audit.gate.everyday.sanitizers]]
shapes = ["softmax"]
variants = ["control", "fast"]
tools = ["synccheck"]

[tool.kernel-audit.gate.release]
like = "everyday"
stale = "fail"
"""
RACE = ToolFinding(
    tool="synccheck",
    kind="divergent-barrier",
    severity="error",
    kernel="softmax_fast",
    message="barrier met by 31 of 128 threads",
    sides=(Side("barrier", "softmax_fast", "kernels/fast.cu", 9, threads="(0..30,0,0)"),),
    count=2,
    raw="",
)


def project(folder: Path) -> Project:
    """A copy of the softmax project with the policy, and with evidence in `reports` (of a GPU) and `given`."""
    home = Path(shutil.copytree(ROOT / "tests/projects/softmax", folder / "softmax"))
    (home / "pyproject.toml").write_text(POLICY)
    made = find_project(home)
    host = audited(made)
    write(host, home / "given")
    write(on_a_gpu(host), home / "reports")
    write_session(session(made), home / "given")
    return made


def audited(made: Project) -> RunRecord:
    """The policy's first rule, run."""
    plan = load_policy(made, "everyday").audits[0].plan(made, "softmax")
    outcomes = [audit_case(made, plan, case, threads=1) for case in plan.cases]
    audits = tuple(audit for outcome in outcomes for audit in outcome.audits)
    exposures = tuple(exposure for outcome in outcomes for exposure in outcome.exposures)
    return RunRecord(
        schema=SCHEMA,
        tool="0",
        started=STARTED,
        command="audit run",
        commit=None,
        plan=plan,
        machine=machine.describe_machine(),
        builds={key: build for outcome in outcomes for key, build in outcome.builds.items()},
        cases=tuple(outcome.record for outcome in outcomes),
        audits=audits,
        exposures=exposures,
        summary=summarize_run(plan, audits, exposures, 1.0),
        closure=closure_of(made, plan.operator, (), run_record.run_cases(plan)),
    )


def on_a_gpu(host: RunRecord) -> RunRecord:
    """The record that a GPU would have left: a graph and the host beside the plain launches, each as it should be."""
    audits = []
    for audit in host.audits:
        more = [result for result in audit.results if result.check in ("completion", "guards")]
        for result in audit.results:
            if result.check == "workspace":
                more += [msgspec.structs.replace(result, check=check) for check in ("graph", "host")]
        audits.append(msgspec.structs.replace(audit, results=(*audit.results, *more)))
    builds = {key: msgspec.structs.replace(build, backend="cuda") for key, build in host.builds.items()}
    checks = (*host.plan.checks, "host")  # its operator promises the bytes of the GPU on the CPU
    plan = msgspec.structs.replace(host.plan, backend="cuda", checks=checks)
    return msgspec.structs.replace(host, plan=plan, audits=tuple(audits), builds=builds)


def session(
    made: Project,
    *findings: ToolFinding,
    found: bool = True,
    backend: Backend = "host",
    tools: tuple[Tool, ...] = ("synccheck",),
) -> SanitizeRecord:
    """The policy's sanitizers, as if run; `findings` are those of `fast`, `found` is of the last tool's canary."""
    plan = load_policy(made, "everyday").sanitizers[0].plan(made, "softmax")
    plan = msgspec.structs.replace(plan, backend=backend, tools=tools)
    build = next(build for key, build in audited_builds(made).items() if key.startswith("fast"))
    canaries = tuple(
        Canary("divergent barrier", tool, found or tool != tools[-1], True, "what was shown") for tool in tools
    )
    rules = suppressions.declared(made)
    day = datetime.fromisoformat(STARTED).date()
    judged = suppressions.apply(rules, findings, day)
    checked = tuple(
        ToolCheck(
            tool=tool,
            variant=variant,
            case=case.id,
            verdict="fail"
            if variant == "fast" and any(not finding.suppressed for finding in judged if finding.tool == tool)
            else "pass"
            if found or tool != tools[-1]
            else "inconclusive",
            reason="as it was shown",
            findings=tuple(finding for finding in judged if finding.tool == tool) if variant == "fast" else (),
            launches=2,
            planned_launches=2,
            seconds=0.1,
            build="fast-build",
        )
        for tool in plan.tools
        for variant in plan.variants
        for case in plan.cases
    )
    counted = sanitize_record.counted(rules, (finding for one in checked for finding in one.findings))
    complaints = sanitize_record.complaints(counted, day, plan.tools, narrowed=plan.pruned)
    return SanitizeRecord(
        schema=SANITIZE_SCHEMA,
        kind="sanitize",
        tool="0",
        started=STARTED,
        command="audit sanitize",
        commit=None,
        plan=plan,
        machine=machine.describe_machine(),
        tools=tuple(ToolRecord(tool, "the accounting of barriers", (), "nothing") for tool in tools),
        builds={"fast-build": build},
        canaries=canaries,
        checked=checked,
        suppressions=counted,
        summary=summarize_session(plan, checked, canaries, complaints, 1.0),
        closure=closure_of(made, plan.operator, (), sanitize.session_cases(plan)),
    )


def audited_builds(made: Project) -> dict[str, BuildIdentity]:
    """The builds of the evidence that is given."""
    (folder,) = (made.root / "given").glob("*/evidence.json")
    return run_record.KIND.load(folder).builds


def write(evidence: RunRecord, runs: Path) -> Path:
    """Whole evidence in a new folder of `runs`."""
    return run_record.draft(runs, evidence.plan).finish(evidence, {"report.html": b"<p>a page"})


def write_session(evidence: SanitizeRecord, runs: Path) -> Path:
    """A whole session in a new folder of `runs`."""
    return sanitize.draft(runs, evidence.plan).finish(evidence, {"report.html": b"<p>a page"})


def rewrite(folder: Path, change: Callable[[RunRecord], RunRecord]) -> Path:
    """Put whole evidence that was changed, its summary made again, in the place of what lies in a folder."""
    evidence = change(run_record.KIND.load(folder))
    summary = summarize_run(evidence.plan, evidence.audits, evidence.exposures, evidence.summary.seconds)
    path = write(msgspec.structs.replace(evidence, summary=summary), folder.parent)
    shutil.rmtree(folder)
    return path.rename(folder)  # under its name, since a project may name it


def looked(made: Project, *folders: str) -> list[Verification]:
    """All evidence in these folders of the project, verified."""
    return [verify(folder, made) for below in folders for folder in find_records(made.root / below)]


def judge(made: Project, policy: str = "everyday", today: date = TODAY) -> Gate:
    """The gate over what is retained and given; the project's settings are read afresh."""
    fresh = find_project(made.root)
    return decide(
        fresh,
        policy,
        load_policy(fresh, policy),
        looked(fresh, "reports", "given"),
        baseline.load_baseline(fresh),
        started=STARTED,
        today=today,
        baseline_file="gate.toml",
    )


def condition(gate: Gate, name: str) -> Condition:
    """The condition of that name."""
    (found,) = [condition for condition in gate.conditions if condition.name == name]
    return found


def wrong(gate: Gate) -> dict[str, str]:
    """Name -> standing of every condition that does not hold."""
    return {condition.name: condition.verdict for condition in gate.conditions if condition.verdict != "pass"}
