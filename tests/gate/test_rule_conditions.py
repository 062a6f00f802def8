"""What the conditions of audits and of sanitizers share: how results are counted, named and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.gate import coverage
from audit.gate.baseline import valid
from audit.gate.coverage import AuditWitness
from audit.gate.evaluation import Evaluation
from audit.gate.policy import load_policy
from audit.gate.rule_conditions import ResultCount, State, enough_cases, first_names, page_of, witnesses_of
from audit.gate.verdict import Standing
from audit.project import Project

from .made import TODAY, looked
from .test_decision import only


def evaluation(project: Project) -> Evaluation:
    policy = load_policy(project, "everyday")
    return Evaluation(project, policy, looked(project, "given"), valid((), TODAY), TODAY)


@pytest.mark.parametrize(
    ("count", "standing", "measured", "detail"),
    [
        (ResultCount(), "inconclusive", "0 passed", ""),
        (ResultCount(good=2), "pass", "2 passed", ""),
        (ResultCount(good=1, accepted=1), "warn", "1 passed, 1 accepted by the baseline", ""),
        (ResultCount(good=1, failed=["a"]), "fail", "1 passed, 1 failed", "it fails in a"),
        (ResultCount(accepted=1, inconclusive=["b: why"]), "inconclusive",
         "0 passed, 1 inconclusive, 1 accepted by the baseline", "inconclusive b: why"),
        (ResultCount(missing=["c"]), "inconclusive", "0 passed, 1 missing",
         "no evidence of c; `audit gate` runs what is missing where there is a GPU"),
        (ResultCount(failed=["a"], missing=["c"]), "fail", "0 passed, 1 failed, 1 missing",
         "it fails in a; no evidence of c; `audit gate` runs what is missing where there is a GPU"),
    ],
)  # fmt: skip
def test_counts_become_a_condition(count: ResultCount, standing: Standing, measured: str, detail: str) -> None:
    condition = count.condition("audits", "passed", "it fails in", "cuda", "reports/x")
    assert (condition.verdict, condition.measured, condition.detail) == (standing, measured, detail)
    assert condition.path == "reports/x"


@pytest.mark.parametrize("state", ["good", "accepted", "failed", "inconclusive"])
def test_each_result_of_a_coverage_is_counted_once(project: Project, state: State) -> None:
    asked = evaluation(project)
    plan = asked.policy.audits[0].plan(project, "softmax")
    audits = dict(coverage.audits(plan, asked.project.operators[plan.operator], asked.evidence))
    first = next(iter(audits))
    audits[first] = None

    def judge(_witness: AuditWitness) -> tuple[State, str]:
        return state, "a reason"

    count = ResultCount.of(audits, judge)
    assert count.missing == [f"{first[1]} in {first[0]}"]
    number = {
        "good": count.good,
        "accepted": count.accepted,
        "failed": len(count.failed),
        "inconclusive": len(count.inconclusive),
    }
    assert number == {**dict.fromkeys(number, 0), state: 3}
    assert all(name.endswith(": a reason") for name in (*count.failed, *count.inconclusive))


@pytest.mark.parametrize(
    ("minimum", "cases", "verdict"), [(0, 0, "inconclusive"), (0, 1, "pass"), (3, 2, "inconclusive")]
)
def test_no_case_is_never_enough(minimum: int, cases: int, verdict: str) -> None:
    assert enough_cases("cases", minimum, cases, "").verdict == verdict


def test_the_first_names_are_named_and_the_others_counted() -> None:
    assert first_names("no evidence of", ["a", "b", "c"]) == "no evidence of a, b, c"
    assert first_names("no evidence of", ["a", "b", "c", "d", "e"]) == "no evidence of a, b, c and 2 more"


def test_where_to_look_is_a_page_that_exists_or_the_folder(project: Project) -> None:
    asked = evaluation(project)
    plan = asked.policy.audits[0].plan(project, "softmax")
    witnesses = witnesses_of(coverage.audits(plan, asked.project.operators[plan.operator], asked.evidence))
    folder = only(project.root / "given").relative_to(project.root)
    assert page_of(asked, witnesses) == f"{folder}/report.html"
    Path(project.root / folder / "report.html").unlink()
    assert page_of(asked, witnesses) == str(folder)
    assert page_of(asked, []) == ""
