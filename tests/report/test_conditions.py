"""Conditions: every check over all audits, coverage and vacuity; what is absent is no pass."""

from __future__ import annotations

import msgspec
import pytest

from audit.checks.result import Figure, Result
from audit.records.run import RunRecord, summarize_run
from audit.report.conditions import RunCondition, count_conditions, run_conditions
from audit.vacuity import Exposure

from .rendered import render
from .synthetic import synthetic


def of(evidence: RunRecord) -> dict[str, RunCondition]:
    return {condition.name: condition for condition in run_conditions(evidence)}


def test_all_hold_in_a_run_that_passes() -> None:
    evidence = synthetic()
    found = of(evidence)
    assert evidence.summary.verdict == "pass"
    assert {name for name, one in found.items() if one.state != "pass"} == {"graph", "probe"}
    assert found["graph"].state == "absent"
    assert (count_conditions(list(found.values())).failed, count_conditions(list(found.values())).total) == (0, 14)
    page = render(evidence)
    assert "0 of 14 conditions failed." in page
    assert '<td class="absent" colspan="5">no result: it applies to nothing in this plan, or did not run</td>' in page


def test_the_furthest_from_holding_is_named() -> None:
    evidence = synthetic(wrong={(1, 2), (3, 1)})
    worse = Figure.of(float("nan"))
    audits = tuple(
        msgspec.structs.replace(audit, results=tuple(_with(r, worse) for r in audit.results))
        if audit.variant == "variant1" and audit.verdict == "fail"
        else audit
        for audit in evidence.audits
    )
    found = of(msgspec.structs.replace(evidence, audits=audits))
    assert (found["bytes"].state, found["bytes"].outcome) == ("fail", "6 of 8 audits")
    final = found["error:final"]
    assert (final.state, final.measured, final.limit, final.outcome) == ("fail", "nan", "1", "10 of 12 audits")
    assert final.audit
    assert (final.audit.variant, final.audit.case) == ("variant1", evidence.plan.cases[3].id)
    assert found["error:precast"].measured == "1.5"
    assert [one.name for one in run_conditions(evidence)][:3] == ["bytes", "error:final", "error:precast"]


def test_a_crash_outweighs_every_figure() -> None:
    evidence = synthetic(wrong={(0, 1)})
    crash = Result("completion", "fail", "crashed (signal): 11")
    audits = tuple(
        msgspec.structs.replace(audit, verdict="fail", results=(crash,)) if at == 5 else audit
        for at, audit in enumerate(evidence.audits)
    )
    worst = of(msgspec.structs.replace(evidence, audits=audits))["completion"]
    assert (worst.state, worst.outcome, worst.result) == ("fail", "11 of 12 audits", crash)
    bound = Result("error:final", "inconclusive", "there is no reference 'fp64'")
    audits = tuple(
        msgspec.structs.replace(audit, results=(*audit.results, bound)) if at == 7 else audit
        for at, audit in enumerate(synthetic().audits)
    )
    assert of(msgspec.structs.replace(evidence, audits=audits))["error:final"].result == bound


def _with(result: Result, measured: Figure) -> Result:
    return msgspec.structs.replace(result, measured=measured) if result.check == "error:final" else result


@pytest.mark.parametrize(
    ("missing", "name", "outcome"),
    [
        ({(0, 0)}, "coverage: planned audits", "11 of 12 of what was planned ran"),
        ({(3, 0), (3, 1), (3, 2)}, "coverage: captures", "1 of 2 captured cases ran"),
    ],
)
def test_what_did_not_run_is_no_pass(missing: set[tuple[int, int]], name: str, outcome: str) -> None:
    evidence = synthetic(missing=missing)
    assert evidence.summary.verdict == "inconclusive"
    condition = of(evidence)[name]
    assert (condition.state, condition.outcome) == ("inconclusive", outcome)
    assert "0 of 14 conditions failed" in render(evidence)


def test_a_mutation_that_nothing_catches() -> None:
    evidence = synthetic()
    exposures = (*evidence.exposures, Exposure("shifted", evidence.plan.cases[0].id, True, ()))
    summary = summarize_run(evidence.plan, evidence.audits, exposures, 1.0)
    evidence = msgspec.structs.replace(evidence, exposures=exposures, summary=summary)
    condition = of(evidence)["vacuity"]
    assert (condition.state, condition.held, condition.of) == ("inconclusive", 2, 3)
    assert "shifted" in condition.outcome
    assert "No check of this plan tells a right result from" in render(evidence)
    assert of(msgspec.structs.replace(evidence, exposures=()))["vacuity"].state == "inconclusive"


@pytest.mark.parametrize("wrong", [set(), {(0, 1)}])
@pytest.mark.parametrize("missing", [set(), {(2, 2)}])
def test_conditions_and_summary_agree(wrong: set[tuple[int, int]], missing: set[tuple[int, int]]) -> None:
    evidence = synthetic(wrong=wrong, missing=missing)
    count = count_conditions(run_conditions(evidence))
    derived = "fail" if count.failed else "inconclusive" if count.inconclusive else "pass"
    assert derived == evidence.summary.verdict
