"""An execution: every arm of a variant in turn, the first that does not complete ends it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit import execution
from audit.backends import Completed, Crashed, Outcome, Unsupported
from audit.checks.view import View
from audit.execution import CaseInputs, execute_variant, step_loads
from audit.inputs import case_inputs
from audit.plan import Plan, Selection, make_plan
from audit.project import Project, find_project


@pytest.fixture
def project(softmax_project: Path) -> Project:
    return find_project(softmax_project)


def plan_of(project: Project, *variants: str) -> Plan:
    return make_plan(project, "softmax", Selection({"n": (33,)}, variants), arch="sm_90", time_limit=60)


def prepared(project: Project, plan: Plan) -> CaseInputs:
    operator, case = project.operators["softmax"], plan.cases[0]
    inputs, steps = case_inputs(operator, case, None)
    return CaseInputs(operator, case, inputs, steps, {name: {} for name in steps})


def executed(project: Project, name: str) -> View:
    plan = plan_of(project, name)
    planned = next(variant for variant in plan.variants if variant.name == name)
    return execute_variant(project, plan, planned, prepared(project, plan), None, threads=1)


def test_both_arms_run_and_leave_the_same_bytes_at_other_addresses(project: Project) -> None:
    view = executed(project, "control")
    assert isinstance(view.outcome, Completed)
    assert [step.name for step in view.steps] == ["live", "restore"]
    assert [step.name for step in view.again] == ["live"]  # the second arm runs the first step alone
    assert view.steps[0].poison != view.again[0].poison
    np.testing.assert_array_equal(view.words(view.steps[0], "y"), view.words(view.again[0], "y"))
    assert view.launched.keys() == {"again"}
    assert view.build is not None
    assert view.on_host == view.graph == ()


def test_what_the_cpu_cannot_build_is_an_outcome_of_its_own(project: Project) -> None:
    (project.root / "kernels/control.cu").write_text("this is no CUDA")
    view = executed(project, "control")
    assert isinstance(view.outcome, Unsupported)
    assert "kernels/control.cu:1:1: error: " in view.outcome.message
    assert (view.build, view.steps, view.again) == (None, (), ())


def test_the_first_arm_that_does_not_complete_ends_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def crash(*_: object) -> Outcome:
        calls.append(1)
        return Crashed("signal", "SIGSEGV", 0.1)

    monkeypatch.setattr(execution.host, "run", crash)
    view = executed(project, "control")
    assert view.outcome == Crashed("signal", "SIGSEGV", 0.1)
    assert len(calls) == 1


def test_every_step_loads_whatever_any_step_changes() -> None:
    lengths, shorter, x = np.array([3]), np.array([0]), np.array([1.0])
    inputs = {"lengths": lengths, "x": x}
    steps = {"live": inputs, "zero": {"lengths": shorter, "x": x}, "restore": {"lengths": lengths, "x": x}}
    assert step_loads(inputs, steps) == {
        "live": {"lengths": lengths}, "zero": {"lengths": shorter}, "restore": {"lengths": lengths}
    }  # fmt: skip
    assert step_loads(inputs, {"live": inputs, "restore": dict(inputs)}) == {"live": {}, "restore": {}}
