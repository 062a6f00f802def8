"""Right kernels raise no alarm: this repository's operators in random cases, 24 every day and 1,000 in full.

`pytest --full tests/test_clean_cases.py` draws others where KERNEL_AUDIT_CLEAN_SEED is set.
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
from audit.records.run import findings
from audit.run import run
from audit.spec import Case

from .conftest import ROOT, full_run

SHAPES = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8")
LONGEST = 700  # tokens: several splits with several tiles, and seconds for a thousand cases


def drawn(project: Project, shape_name: str, rng: random.Random) -> Case:
    """A case with a random value on every axis, and a seed of its own."""
    operator, shape = project.shape(shape_name)
    values = {axis.name: rng.choice(axis.values) for axis in operator.axes if axis.values and axis.name != "rows"}
    values["context"] = rng.choice((rng.randint(1, 40), rng.randint(1, LONGEST)))
    values["page"] = rng.choice((16, 16, 32, 64, 128, 1648))
    if rng.random() < 0.7:  # the kernels' own head counts and sizes most of the time
        values |= {"heads": 6, "dim": 256}
    values["lengths"] = "live"  # replayed lengths have one context, and the default plans have that case
    return operator.case(shape, values, seed=rng.randint(1, 10**6))


def planned(project: Project, shape: str, cases: list[Case]) -> Plan:
    plan = planning.make_plan(project, shape, Selection(seeds=(1,)), arch="sm_90", time_limit=120)
    return msgspec.structs.replace(
        plan, cases=tuple({case.id: case for case in cases}.values()), described={}, pruned=True
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("kernels_alone")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_random_case_of_a_right_kernel_fails(shape: str, tmp_path: Path) -> None:
    project = find_project(ROOT)
    rng = random.Random(f"{os.environ.get('KERNEL_AUDIT_CLEAN_SEED', '')}{shape}")
    count = 125 if full_run() else 3
    plan = planned(project, shape, [drawn(project, shape, rng) for _ in range(count)])
    record, _ = run(project, plan, tmp_path, "test")
    alarms = [f"{one.scope}: {one.result.check}: {one.result.detail}" for one in findings(record)]
    assert not alarms, "\n".join(alarms[:10])
    assert len(record.audits) == plan.audits >= count
