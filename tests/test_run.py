"""A run: the plan is on disk first, cases come back in the plan's order, and an error leaves no record."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from audit import run as runs
from audit.case import CaseOutcome, audit_case
from audit.errors import PlanError
from audit.plan import Plan, Selection, make_plan
from audit.project import Project, find_project
from audit.records.run import KIND, Audit
from audit.spec import Case


@pytest.fixture
def project(softmax_project: Path) -> Project:
    return find_project(softmax_project)


@pytest.fixture
def plan(project: Project) -> Plan:
    selection = Selection({"n": (4096, 1, 33)}, ("fast",))
    return make_plan(project, "softmax", selection, arch="sm_90", time_limit=60)


def test_every_planned_audit_is_in_the_record_in_the_plans_order(project: Project, plan: Plan) -> None:
    seen: list[Audit] = []
    record, home = runs.run(project, plan, project.runs, "audit run", on_audit=seen.append)
    planned = [(case.id, variant.label) for case in plan.cases for variant in plan.variants]
    assert [(audit.case, audit.variant) for audit in record.audits] == planned
    assert {(audit.case, audit.variant) for audit in seen} == set(planned)
    assert [one.case for one in record.cases] == list(plan.cases)
    assert record.summary.verdict == "pass"
    assert KIND.load(home) == record
    assert sorted(file.name for file in home.iterdir()) == [
        "SHA256SUMS", "evidence.json", "plan.json", "report.html", "statement.json"
    ]  # fmt: skip


def test_the_folder_of_runs_ignores_itself_when_the_tool_makes_it(project: Project, plan: Plan) -> None:
    assert project.own_runs() == project.runs
    assert (project.runs / ".gitignore").read_text() == "*\n"
    (project.runs / ".gitignore").write_text("")
    assert (project.own_runs() / ".gitignore").read_text() == ""  # what was there stays
    kept = project.root / "kept"
    runs.run(project, narrowed(plan), kept, "audit run")
    assert not (kept / ".gitignore").exists()


def narrowed(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, cases=plan.cases[:1])


def test_the_plan_is_on_disk_before_anything_runs_and_an_error_leaves_no_record(
    project: Project, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> CaseOutcome:
        (partial,) = project.runs.glob(".*.partial")
        assert msgspec.json.decode((partial / "plan.json").read_bytes(), type=Plan) == plan
        raise PlanError("the case cannot be made")

    monkeypatch.setattr(runs, "audit_case", fail)
    with pytest.raises(PlanError, match="cannot be made"):
        runs.run(project, plan, project.runs, "audit run")
    assert [path for path in project.runs.iterdir() if not path.name.startswith(".")] == []


def test_cases_go_through_the_executor_that_is_given(project: Project, plan: Plan) -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *args: object, **more: object):  # type: ignore[no-untyped-def, override]
            self.submitted += 1
            return super().submit(*args, **more)  # type: ignore[arg-type]

    with Counting(1) as executor:
        record, _ = runs.run(project, plan, project.runs, "audit run", executor=executor)
        assert executor.submitted == len(plan.cases)
    assert record.summary.ran == plan.audits


def test_the_longest_case_starts_first(project: Project, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def noted(*args: object, **more: object) -> CaseOutcome:
        case = args[2]
        assert isinstance(case, Case)
        started.append(case.n)
        return audit_case(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "audit_case", noted)
    with ThreadPoolExecutor(1) as executor:
        runs.run(project, plan, project.runs, "audit run", executor=executor)
    assert started == [4096, 33, 1]
