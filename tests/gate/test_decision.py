"""The gate over whole evidence passes; each thing that is taken from it or altered turns it, with the reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from audit.checks.result import Result
from audit.gate.decision import decide
from audit.gate.policy import Policy
from audit.gate.verdict import overall
from audit.project import Project, find_project
from audit.records import run as run_record
from audit.records.run import RunRecord
from audit.spec import Case

from .made import POLICY, RACE, STARTED, TODAY, audited, condition, judge, rewrite, session, write, write_session, wrong

SUPPRESSION = """
[[tool.kernel-audit.suppressions]]
name = "known"
tool = "synccheck"
kind = "divergent-barrier"
where = "softmax_fast"
reason = "the other threads have left"
expires = {}
"""


def only(folder: Path, record: str = "evidence.json") -> Path:
    """The one folder below that holds such a record."""
    (file,) = folder.glob(f"*/{record}")
    return file.parent


def without_case(case: Callable[[Case], bool]) -> Callable[[RunRecord], RunRecord]:
    """Leave cases out of the plan and of everything else."""

    def change(evidence: RunRecord) -> RunRecord:
        gone = {one.id for one in evidence.plan.cases if case(one)}
        assert gone
        kept = tuple(one for one in evidence.plan.cases if one.id not in gone)
        return msgspec.structs.replace(
            evidence,
            plan=msgspec.structs.replace(evidence.plan, cases=kept),
            cases=tuple(one for one in evidence.cases if one.case.id not in gone),
            audits=tuple(one for one in evidence.audits if one.case not in gone),
            exposures=tuple(one for one in evidence.exposures if one.case not in gone),
        )

    return change


@pytest.mark.parametrize("policy", ["everyday", "release"])
def test_whole_and_current_evidence_passes(project: Project, policy: str) -> None:
    gate = judge(project, policy)
    assert (gate.verdict, wrong(gate)) == ("pass", {})
    assert condition(gate, "audits softmax on cuda").measured == "4 passed"
    assert condition(gate, "synccheck softmax on host").measured == "2 clean"
    assert condition(gate, "canaries synccheck softmax on host").measured == "1"
    assert condition(gate, "launches synccheck softmax on host").measured == "4"
    assert len(gate.evidence) == 3


def test_no_rule_is_inconclusive(project: Project) -> None:
    gate = decide(project, "empty", Policy(), [], (), started=STARTED, today=TODAY)
    assert (gate.verdict, wrong(gate)) == ("inconclusive", {"rules": "inconclusive"})
    assert overall([]) == "inconclusive"


@pytest.mark.parametrize("file", ["evidence.json", "plan.json", "report.html", "statement.json", "SHA256SUMS"])
def test_one_altered_byte_fails(project: Project, file: str) -> None:
    folder = only(project.root / "reports")
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    gate = judge(project)
    assert gate.verdict == "fail"
    assert condition(gate, f"evidence {folder.name}").measured == "altered"
    assert condition(gate, "audits softmax on cuda").measured == "0 passed, 4 missing"


def test_a_case_that_did_not_run_is_inconclusive(project: Project) -> None:
    folder = rewrite(
        only(project.root / "reports"),
        lambda evidence: msgspec.structs.replace(
            evidence, audits=tuple(one for one in evidence.audits if "n=33" not in one.case)
        ),
    )
    gate = judge(project)
    assert gate.verdict == "inconclusive"
    assert condition(gate, f"evidence {folder.name}").measured == "not whole"
    assert "fast was planned in softmax/seed1/rows=7,n=33" in condition(gate, f"evidence {folder.name}").detail


def test_a_case_that_was_not_planned_is_inconclusive(project: Project) -> None:
    rewrite(only(project.root / "reports"), without_case(lambda case: case.n == 33))
    gate = judge(project)
    assert gate.verdict == "inconclusive"
    assert wrong(gate) == {"audits softmax on cuda": "inconclusive", "cases softmax on cuda": "inconclusive"}
    assert condition(gate, "audits softmax on cuda").measured == "2 passed, 2 missing"
    assert "control in softmax/seed1/rows=7,n=33" in condition(gate, "audits softmax on cuda").detail


def test_a_case_of_the_first_step_does_not_speak_for_all(project: Project) -> None:
    def change(evidence: RunRecord) -> RunRecord:
        cases = [msgspec.structs.replace(case, first_step_only=True) for case in evidence.plan.cases]
        records = [msgspec.structs.replace(one, case=case) for one, case in zip(evidence.cases, cases, strict=True)]
        plan = msgspec.structs.replace(evidence.plan, cases=tuple(cases))
        return msgspec.structs.replace(evidence, plan=plan, cases=tuple(records))

    rewrite(only(project.root / "reports"), change)
    assert condition(judge(project), "audits softmax on cuda").measured == "0 passed, 4 missing"


def blind(evidence: RunRecord) -> RunRecord:
    """No check told noise from the right result."""
    seen = tuple(
        msgspec.structs.replace(one, caught_by=()) if one.mutation == "noise" else one for one in evidence.exposures
    )
    return msgspec.structs.replace(evidence, exposures=seen)


def test_mutations_that_no_check_sees_are_inconclusive(project: Project) -> None:
    rewrite(only(project.root / "given"), blind)
    gate = judge(project)
    assert wrong(gate) == {"mutations softmax on host": "inconclusive"}
    assert condition(gate, "mutations softmax on host").measured == "1 of 2"
    assert "noise" in condition(gate, "mutations softmax on host").detail


def test_too_few_mutations_are_inconclusive(project: Project) -> None:
    settings = project.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("mutations = 2", "mutations = 3"))
    assert wrong(judge(project)) == {"mutations softmax on cuda": "inconclusive"}


def fails(evidence: RunRecord) -> RunRecord:
    """The check of bytes fails for `fast` at n=33."""
    result = Result("bytes", "fail", "1 of 7 elements differs", step="live", where="y[rows=0, n=3]")
    audits = tuple(
        msgspec.structs.replace(one, verdict="fail", results=(*one.results, result))
        if one.variant == "fast" and "n=33" in one.case
        else one
        for one in evidence.audits
    )
    return msgspec.structs.replace(evidence, audits=audits)


def test_a_failed_check_fails_and_is_found(project: Project) -> None:
    rewrite(only(project.root / "reports"), fails)
    gate = judge(project)
    assert wrong(gate) == {"audits softmax on cuda": "fail"}
    (found,) = gate.found
    assert (found.rule, found.level, found.lines[0].file) == ("check/bytes", "error", "kernels/fast.cu")
    assert "y[rows=0, n=3]" in found.message


def test_the_newest_evidence_decides(project: Project) -> None:
    folder = only(project.root / "reports")
    good = run_record.KIND.load(folder)
    rewrite(folder, lambda evidence: msgspec.structs.replace(fails(evidence), started="2026-11-01T09:00:00+00:00"))
    assert judge(project).verdict == "fail"
    shutil.copytree(only(project.root / "given"), project.root / "reports/other")
    run_record.draft(project.root / "reports", good.plan).finish(good, {"report.html": b""})
    assert judge(project).verdict == "pass"


@pytest.mark.parametrize(("policy", "standing", "verdict"), [("everyday", "warn", "pass"), ("release", "fail", "fail")])
def test_a_changed_source_line(project: Project, policy: str, standing: str, verdict: str) -> None:
    source = project.root / "kernels/fast.cu"
    source.write_text(source.read_text().replace("0.0f", "0.f", 1))
    gate = judge(project, policy)
    assert condition(gate, "sources softmax on cuda").verdict == standing
    assert "kernels/fast.cu has changed" in condition(gate, "sources softmax on cuda").detail
    assert condition(gate, "sources softmax on cuda").measured == "1 of 2 variants stale"
    # What can run here has to be run again, whatever the policy lets a device be.
    assert condition(gate, "sources softmax on host").verdict == "inconclusive"
    for old in (only(project.root / "given"), only(project.root / "given", "sanitize.json")):
        shutil.rmtree(old)
    write(audited(project), project.root / "given")
    write_session(session(project), project.root / "given")
    again = judge(project, policy)
    assert (again.verdict, wrong(again)) == (verdict, {"sources softmax on cuda": standing})


def test_a_canary_that_was_not_found_is_inconclusive(project: Project) -> None:
    shutil.rmtree(only(project.root / "given", "sanitize.json"))
    write_session(session(project, found=False), project.root / "given")
    gate = judge(project)
    assert gate.verdict == "inconclusive"
    assert wrong(gate) == {
        "synccheck softmax on host": "inconclusive",
        "canaries synccheck softmax on host": "inconclusive",
    }
    assert "divergent barrier: what was shown" in condition(gate, "canaries synccheck softmax on host").detail


def test_a_clean_result_beside_a_missed_canary_contradicts_itself(project: Project) -> None:
    folder = only(project.root / "given", "sanitize.json")
    lying = session(project)
    canaries = tuple(msgspec.structs.replace(one, found=False) for one in lying.canaries)
    shutil.rmtree(folder)
    path = write_session(msgspec.structs.replace(lying, canaries=canaries), project.root / "given")
    gate = judge(project)
    assert gate.verdict == "fail"
    assert condition(gate, f"evidence {path.name}").measured == "contradictory"


def test_a_finding_fails_and_a_suppression_holds_until_it_expires(project: Project) -> None:
    folder = only(project.root / "given", "sanitize.json")
    shutil.rmtree(folder)
    first = write_session(session(project, RACE), project.root / "given")
    assert wrong(judge(project)) == {"synccheck softmax on host": "fail"}
    settings = project.root / "pyproject.toml"
    settings.write_text(settings.read_text() + SUPPRESSION.format("2026-11-30"))
    shutil.rmtree(first)

    write_session(session(find_project(project.root), RACE), project.root / "given")
    gate = judge(project)
    assert (gate.verdict, wrong(gate)) == ("pass", {})
    assert [found.accepted for found in gate.found] == ["the other threads have left"]
    late = judge(project, today=date(2026, 12, 1))
    assert wrong(late) == {"synccheck softmax on host": "fail", "suppressions": "fail"}
    assert "expired on 2026-11-30" in condition(late, "suppressions").detail
    settings.write_text(POLICY)  # and where the rule is gone, the finding counts again
    assert wrong(judge(project))["synccheck softmax on host"] == "fail"


def test_a_rule_that_expired_before_the_session_fails(project: Project) -> None:
    settings = project.root / "pyproject.toml"
    settings.write_text(settings.read_text() + SUPPRESSION.format("2026-10-01"))
    gate = judge(project)
    assert wrong(gate) == {"suppressions": "fail"}
    assert condition(gate, "suppressions").measured == "1 declared, 1 complaints"


@pytest.mark.parametrize(("pruned", "verdict"), [(True, "pass"), (False, "fail")])
def test_a_closed_variant_in_a_default_plan_fails(project: Project, pruned: bool, verdict: str) -> None:
    def closed(evidence: RunRecord) -> RunRecord:
        control, fast = evidence.plan.variants
        variants = (control, msgspec.structs.replace(fast, status="closed", why="slower"))
        return msgspec.structs.replace(
            evidence, plan=msgspec.structs.replace(evidence.plan, variants=variants, pruned=pruned)
        )

    rewrite(only(project.root / "reports"), closed)
    gate = judge(project)
    assert gate.verdict == verdict
    found = condition(gate, "closed variants of softmax")
    assert found.verdict == verdict
    assert found.detail.startswith("" if pruned else "fast: closed, and in a default plan")


@pytest.mark.parametrize(
    ("status", "verdict", "why"),
    [
        ("control", "pass", ""),
        ("admitted", "pass", ""),
        ("experimental", "fail", "fast is experimental; admit it with evidence"),
        ("closed", "fail", "fast is closed"),
    ],
)
def test_what_may_be_a_default(project: Project, status: str, verdict: str, why: str) -> None:
    source = project.root / "kernels/softmax.py"
    text = source.read_text().replace("parent=parent,", f'parent=parent, status="{status}",')
    source.write_text(text.replace("    bounds=", '    default="fast",\n    bounds='))
    default = condition(judge(project), "default of softmax")
    assert default.verdict == verdict
    assert default.detail.startswith(why)


@pytest.mark.parametrize(
    ("named", "verdict", "why"),
    [
        ('("reports/none",)', "fail", "its evidence is missing: reports/none"),
        ("()", "inconclusive", "no evidence of fast on cuda"),
    ],
)
def test_an_admitted_default_needs_evidence(project: Project, named: str, verdict: str, why: str) -> None:
    source = project.root / "kernels/softmax.py"
    text = source.read_text().replace("    bounds=", '    default="fast",\n    bounds=')
    source.write_text(text.replace("parent=parent,", f'parent=parent, status="admitted", evidence={named},'))
    shutil.rmtree(only(project.root / "reports"))
    default = condition(judge(project), "default of softmax")
    assert default.verdict == verdict
    assert default.detail.startswith(why)
