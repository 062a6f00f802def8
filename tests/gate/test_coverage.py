"""Which result speaks for a case and a variant: the newest sound one, of the same device, architecture and steps."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from audit.gate import coverage
from audit.gate.policy import load_policy
from audit.plan import Plan
from audit.project import Project
from audit.records.run import RunRecord

from .made import looked, rewrite, session, write_session
from .test_decision import only


@pytest.fixture
def plan(project: Project) -> Plan:
    """The policy's first rule, for the host."""
    return load_policy(project, "everyday").audits[0].plan(project, "softmax")


def covered(project: Project, plan: Plan, *folders: str) -> set[bool]:
    """Whether pairs of the plan are covered by the records of these folders."""
    operator = project.operators[plan.operator]
    return {witness is not None for witness in coverage.audits(plan, operator, looked(project, *folders)).values()}


def test_a_record_speaks_for_its_own_device_alone(project: Project, plan: Plan) -> None:
    on_device = msgspec.structs.replace(plan, backend="cuda")
    assert covered(project, plan, "given") == covered(project, on_device, "reports") == {True}
    assert covered(project, plan, "reports") == covered(project, on_device, "given") == {False}


def test_a_record_speaks_for_its_own_architecture_alone(project: Project, plan: Plan) -> None:
    cases = tuple(msgspec.structs.replace(case, arch="sm_80") for case in plan.cases)
    assert covered(project, msgspec.structs.replace(plan, cases=cases), "given") == {False}


def test_all_steps_speak_for_the_first_and_not_the_other_way_round(project: Project, plan: Plan) -> None:
    first = tuple(msgspec.structs.replace(case, first_step_only=True) for case in plan.cases)
    assert covered(project, msgspec.structs.replace(plan, cases=first), "given") == {True}

    def shorten(record: RunRecord) -> RunRecord:
        cases = tuple(msgspec.structs.replace(one.case, first_step_only=True) for one in record.cases)
        records = tuple(msgspec.structs.replace(one, case=case) for one, case in zip(record.cases, cases, strict=True))
        shorter = msgspec.structs.replace(record.plan, cases=cases)
        return msgspec.structs.replace(record, plan=shorter, cases=records)

    rewrite(only(project.root / "given"), shorten)
    assert covered(project, plan, "given") == {False}


def test_the_newest_speaks(project: Project, plan: Plan) -> None:
    old = only(project.root / "given")
    shutil.copytree(old, project.root / "later/copy")
    rewrite(
        project.root / "later/copy", lambda record: msgspec.structs.replace(record, started="2026-11-01T11:00:00+00:00")
    )
    for folders in (("given", "later"), ("later", "given")):
        found = coverage.audits(plan, project.operators[plan.operator], looked(project, *folders))
        assert {witness.by.path.name for witness in found.values() if witness} == {"copy"}


def test_an_altered_record_speaks_for_nothing(project: Project, plan: Plan) -> None:
    file = only(project.root / "given") / "evidence.json"
    file.write_bytes(file.read_bytes() + b" ")
    assert covered(project, plan, "given") == {False}


def test_a_session_speaks_for_its_own_tools_alone(project: Project) -> None:
    plan = load_policy(project, "everyday").sanitizers[0].plan(project, "softmax")
    write_session(session(project, tools=("memcheck",)), project.root / "other")
    for tool, expected in (("memcheck", {True}), ("racecheck", {False})):
        found = coverage.checks(plan, tool, looked(project, "other"))  # type: ignore[arg-type]
        assert {witness is not None for witness in found.values()} == expected


def test_a_comparison_by_another_relation_than_the_declared_one_is_lacking(project: Project) -> None:
    record = next(one.record for one in looked(project, "given") if isinstance(one.record, RunRecord))
    audit = next(one for one in record.audits if one.variant == "fast")
    case = next(one for one in record.cases if one.case.id == audit.case)

    def lacking(recorded: str, declared: str) -> list[str]:
        variants = tuple(
            msgspec.structs.replace(one, relation=recorded if one.name == "fast" else one.relation)
            for one in record.plan.variants
        )
        other = msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, variants=variants))
        found = coverage._lacking(other, audit, case, {"fast": {"control"}}, {"fast": declared})
        return [each for each in found if "relation" in each]

    assert lacking("bitwise", "bitwise") == lacking("bitwise", "ulps=2") == []  # equal bytes satisfy every relation
    looser = "a comparison by the relation bitwise: it was compared by unrelated"
    assert looser in lacking("unrelated", "bitwise")
    assert "a comparison by the relation ulps=2: it was compared by ulps=9" in lacking("ulps=9", "ulps=2")
