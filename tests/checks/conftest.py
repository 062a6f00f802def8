"""Views of real runs on the CPU, right in everything: what a fault is then planted in."""

from __future__ import annotations

import pytest

from audit import plan as planning
from audit.checks import View
from audit.execution import CaseInputs, execute_variant
from audit.inputs import case_inputs
from audit.plan import Selection
from audit.project import find_project

from ..conftest import ROOT


@pytest.fixture(scope="session")
def views() -> tuple[View, View]:
    """Softmax over 7 rows of 33 numbers: its control, and a faster variant that leaves the same bytes."""
    project = find_project(ROOT / "tests/projects/softmax")
    selection = Selection(axes={"n": [33]}, variants=["fast"])
    plan = planning.make_plan(project, "softmax", selection, arch="sm_90", time_limit=60)
    operator, (case,) = project.operators["softmax"], plan.cases
    inputs, steps = case_inputs(operator, case, None)
    expected = {
        name: {one.name: one.compute(case, given) for one in operator.references} for name, given in steps.items()
    }
    prepared = CaseInputs(operator, case, inputs, steps, expected)
    control, fast = plan.variants
    parent = execute_variant(project, plan, control, prepared, None, 1)
    return parent, execute_variant(project, plan, fast, prepared, parent, 1)


@pytest.fixture
def control(views: tuple[View, View]) -> View:
    return views[0]


@pytest.fixture
def fast(views: tuple[View, View]) -> View:
    """The faster variant, with the control as its parent."""
    return views[1]
