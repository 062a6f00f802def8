"""Records of any size, made up: cases x variants with every check, some of which fail."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from audit.checks.difference import amount
from audit.checks.result import Figure, LargestDifference, Result, Verdict, worst
from audit.checks.tally import tally
from audit.compile.identity import BuildIdentity
from audit.metrics import Metric
from audit.plan import Plan, PlannedVariant
from audit.records.machine import MachineRecord
from audit.records.run import SCHEMA, Audit, CaseRecord, RunRecord, summarize_run
from audit.spec import Case
from audit.vacuity import Exposure

_PASSING = ("identity", "workspace", "guards", "inputs", "finite", "repeat")
CHECKS = ("completion", *_PASSING, "bytes", "graph", "error", "probe")


def synthetic(
    cases: int = 4,
    variants: int = 3,
    *,
    wrong: Collection[tuple[int, int]] = (),
    missing: Collection[tuple[int, int]] = (),
    name: str = "variant",
    case: str = "",
) -> RunRecord:
    """Of `wrong` (case, variant) pairs bytes and bounds fail; `missing` ones did not run. The last two cases are
    captures. `name` begins every variant's name, `case` every capture's."""
    names = [f"{name}{at}" for at in range(variants)]
    plan = Plan(
        shape="q6",
        operator="grouped",
        backend="host",
        arch="sm_90",
        tensor_cores="measured",
        cases=tuple(_case(at, at >= cases - 2, case) for at in range(cases)),
        described={},
        variants=tuple(
            PlannedVariant(each, names[at - 1] if at else None, "admitted", f"kernels/{at}.cu", "what it changes")
            for at, each in enumerate(names)
        ),
        checks=CHECKS,
        time_limit=60,
        pruned=False,
        references={"fp64": "exact"},
    )
    audits = tuple(
        _audit(each, variant.label, (row, column) in wrong, column > 0)
        for row, each in enumerate(plan.cases)
        for column, variant in enumerate(plan.variants)
        if (row, column) not in missing
    )
    ran = {audit.case for audit in audits}
    exposures = tuple(Exposure(each, plan.cases[0].id, True, ("error:final",)) for each in ("zeros", "noise"))
    return RunRecord(
        schema=SCHEMA,
        tool="0.1.0",
        started="2026-11-29T18:00:00+00:00",
        command="audit run --shape q6",
        commit="c" * 40,
        plan=plan,
        machine=MachineRecord("Linux", "EPYC", 2, "3.11", {"numpy": "2.4"}, "NVIDIA H200, driver 580"),
        builds={f"{each}-{at:016x}": _build(at) for at, each in enumerate(names)},
        cases=tuple(
            CaseRecord(each, f"{at:064x}", "d" * 64 if each.capture else None, ("live", "restore"), None)
            for at, each in enumerate(plan.cases)
            if each.id in ran
        ),
        audits=audits,
        exposures=exposures,
        summary=summarize_run(plan, audits, exposures, 12.5),
    )


def _case(at: int, captured: bool, name: str) -> Case:
    capture = f"{name}set/layer{at // 3}/rank{at % 3}" if captured else None
    return Case("q6", "grouped", {"rows": 6, "context": at + 1}, seed=1, capture=capture)


def _audit(case: Case, variant: str, wrong: bool, has_parent: bool) -> Audit:
    zero, two = Figure.of(0), Figure.of(2)
    results = [Result("completion", "pass", "2 launches seen, 2 planned", measured=two, limit=two)]
    results += [Result(check, "pass", "right", "live", "", zero, zero) for check in _PASSING]
    if has_parent:
        results.append(_bytes("live", wrong))
    error = 3.0 if wrong else 0.5
    verdict: Verdict = "fail" if wrong else "pass"
    where = f"row={case.axes['context'] % 6}, head={case.axes['context'] % 4}"
    results += [
        Result(f"error:{bound}", verdict, "told", "live", where, Figure.of(error * share), Figure.of(1.0))
        for bound, share in (("final", 1.0), ("precast", 0.5))
    ]
    metrics = tuple(
        Metric(name, "fp64", "live", Figure.of(error), Figure.of(error / 10), (0, 1, 3), (900, 90, 10))
        for name in ("out", "precast")
    )
    build = f"{variant}-{int(variant[-1]) if variant[-1:].isdigit() else 0:016x}"
    return Audit(case.id, variant, worst([r.verdict for r in results]), 0.25, tuple(results), metrics, build)


def _bytes(step: str, wrong: bool) -> Result:
    if not wrong:
        return Result("bytes", "pass", "9216 elements equal parent", step, "", Figure.of(0), Figure.of(0))
    differ = np.zeros((80, 6, 4, 8), bool)
    differ[3:9, 2, :, :5] = True
    found = tally("partial", [("split", 80), ("row", 6), ("head", 4), ("dim", 8)], differ)
    assert found
    first, furthest = "partial[split=3, row=2, head=0, dim=0]", "partial[split=4, row=2, head=1, dim=3]"
    largest = LargestDifference("partial", 120, Figure.of(0.0225), furthest, 7, first, 0, 0)
    detail = (
        f"120 of 15360 elements differ, {amount([largest])}; the first {first} is 0x3ca81c6a, parent has 0xbb1d5a7c"
    )
    return Result("bytes", "fail", detail, step, first, Figure.of(120), Figure.of(0), (found,), (largest,))


def _build(at: int) -> BuildIdentity:
    source = f"kernels/{at}.cu"
    return BuildIdentity(
        "host", "sm_90", "k" * 64, source, {source: "a" * 64}, ("q<6>",), "g++ 12.2.0", ("-O2",), f"{at:064x}", "f" * 16
    )
