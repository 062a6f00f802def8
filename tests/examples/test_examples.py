"""Every example says what it says: right variants pass, wrong twins fail by default, and random cases raise no alarm.

`pytest --full tests/examples` draws 1,000 cases, others where KERNEL_AUDIT_CLEAN_SEED is set.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import msgspec
import pytest

from audit import plan as planning
from audit.plan import Plan, Selection
from audit.project import Project, find_project
from audit.records.run import RunRecord, findings
from audit.run import run
from audit.spec import Axis, AxisValue, Case, Operator

from ..conftest import ROOT, full_run

PROJECT: Project = find_project(ROOT / "examples")
NAMES = tuple(PROJECT.operators)
GPU_ONLY = ("gemm_bf16",)
"""The emulated headers have no bfloat16; tests take the front end that needs no clang."""
MOST = 60  # lines of a declaration
LARGEST = 400  # of an axis, in random cases


def wrong(operator: Operator) -> list[str]:
    return [variant.name for variant in operator.variants if variant.note.startswith("WRONG")]


def audited(name: str, out: Path, plan: Plan | None = None) -> RunRecord:
    plan = plan or planning.make_plan(PROJECT, name, Selection(), arch="sm_90", time_limit=120)
    return run(PROJECT, plan, out, "test")[0]


def verdicts(record: RunRecord) -> dict[str, str]:
    """The worst verdict of each variant."""
    order = ("pass", "inconclusive", "fail")
    found: dict[str, str] = {}
    for audit in record.audits:
        found[audit.variant] = max(found.get(audit.variant, "pass"), audit.verdict, key=order.index)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_a_control_a_right_variant_and_a_wrong_twin(name: str) -> None:
    operator = PROJECT.operators[name]
    assert len(operator.variants) >= 3
    assert len(wrong(operator)) == 1
    file = Path(PROJECT.declared_in(name))
    assert len(file.read_text().splitlines()) < MOST


@pytest.mark.parametrize("name", NAMES)
def test_only_the_wrong_twin_fails_by_default_and_no_variant_is_the_control_bit_for_bit(
    name: str, tmp_path: Path
) -> None:
    operator = PROJECT.operators[name]
    record = audited(name, tmp_path)
    alarms = "\n".join(f"{one.scope}: {one.result.check}: {one.result.detail}" for one in findings(record))
    expected = {one.name: "fail" if one.name in wrong(operator) else "pass" for one in operator.variants}
    if name in GPU_ONLY:
        expected = dict.fromkeys(expected, "inconclusive")
    assert verdicts(record) == expected, alarms
    differing = {
        audit.variant
        for audit in record.audits
        for one in (*audit.results, *audit.notes)
        if one.check in ("bytes", "relation") and sum(found.differing for found in one.largest)
    }
    assert name in GPU_ONLY or {variant.name for variant in operator.variants if variant.parent} <= differing


def drawn(axis: Axis, rng: random.Random) -> AxisValue:
    """A value that the axis promises to handle."""
    if axis.values:
        return rng.choice(axis.values)
    assert isinstance(axis.default, int)
    least, step = axis.at_least or 1, axis.multiple_of or 1
    most = max(least, min(axis.at_most or LARGEST, LARGEST))
    value = rng.choice((rng.randint(least, most), rng.randint(least, min(most, least + 8))))
    return max(-(-least // step) * step, value // step * step)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in GPU_ONLY])
def test_no_random_case_of_a_right_variant_fails(name: str, tmp_path: Path) -> None:
    operator, shape = PROJECT.shape(name)
    rng = random.Random(f"{os.environ.get('KERNEL_AUDIT_CLEAN_SEED', '')}{name}")
    count = 85 if full_run() else 2
    right = tuple(one.name for one in operator.variants if one.name not in wrong(operator))
    plan = planning.make_plan(PROJECT, name, Selection(variants=right), arch="sm_90", time_limit=120)
    families = plan.cases[0].families
    cases: dict[str, Case] = {}
    for _ in range(count):
        values = {axis.name: drawn(axis, rng) for axis in operator.axes}
        case = operator.case(shape, values, seed=rng.randint(1, 10**6))
        cases[case.id] = msgspec.structs.replace(case, families=families)
    plan = msgspec.structs.replace(plan, cases=tuple(cases.values()), described={}, pruned=True)
    record = audited(name, tmp_path, plan)
    alarms = [f"{one.scope}: {one.result.check}: {one.result.detail}" for one in findings(record)]
    assert not alarms, "\n".join(alarms[:10])
    assert len(record.audits) == plan.audits >= 2 * len(cases)
