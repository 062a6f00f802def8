"""What a view reports of launches and binaries is held against the plan and the build."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from audit import bundle
from audit.backends import Completed, host
from audit.checks import View
from audit.checks.completion import completion
from audit.checks.identity import identity
from audit.compile.host import build_host
from audit.project import find
from audit.spec import Shape

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder = tmp_path_factory.mktemp("bundle")
    project = find(ROOT / "projects/softmax")
    operator = project.operators["softmax"]
    case = operator.case(Shape("softmax"), {"n": 33}, seed=1)
    variant = operator.variant("control")
    inputs = operator.inputs(case, case.rng())
    written = bundle.write(folder, operator, variant, case, inputs, operator.steps(case, inputs))
    build = build_host(project.root, project.root / variant.code.path, written.entries)
    outcome = host.run(folder, written, build, 60, 1)
    return View(operator, variant, case, written, build.identity, outcome, [], [], {}, None)


def completed(view: View) -> Completed:
    assert isinstance(view.outcome, Completed)
    return view.outcome


def test_all_planned_launches_were_seen(view: View) -> None:
    assert [result.verdict for result in completion(view)] == ["pass"]
    assert len(completed(view).launches) == 2


def test_a_launch_that_was_not_seen_fails(view: View) -> None:
    outcome = completed(view)
    short = msgspec.structs.replace(outcome, launches=outcome.launches[:-1])
    (result,) = completion(dataclasses.replace(view, outcome=short))
    assert result.verdict == "fail"
    assert result.detail.startswith("1 launches seen, 2 planned")


def test_a_launch_of_another_grid_fails(view: View) -> None:
    outcome = completed(view)
    other = msgspec.structs.replace(outcome.launches[0], blocks=8)
    changed = msgspec.structs.replace(outcome, launches=(other, *outcome.launches[1:]))
    assert [result.verdict for result in completion(dataclasses.replace(view, outcome=changed))] == ["fail"]


def test_the_binary_that_ran_is_the_one_that_was_built(view: View) -> None:
    assert [result.verdict for result in identity(view)] == ["pass"]
    other = msgspec.structs.replace(completed(view), ran_fnv="0" * 16)
    assert [result.verdict for result in identity(dataclasses.replace(view, outcome=other))] == ["fail"]
