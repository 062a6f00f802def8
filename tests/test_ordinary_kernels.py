"""Ordinary habits of kernels raise no alarm, and a fault among them is found by the check that should find it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audit import arena
from audit.errors import ProjectError
from audit.inputs import case_inputs
from audit.project import find_project

from .conftest import ROOT, Ran

PROJECT = ROOT / "tests/projects/ordinary"
EXPECTED = {
    "quantise": {
        "control": set(),
        "wider": set(),
        "twice": set(),
        "last_missing": {"bytes", "workspace", "repeat", "error"},
        "itself": {"identity"},
    },
    "accumulate": {"control": set(), "wider": set(), "half": {"bytes", "error"}, "nothing": {"bytes", "error"}},
    "mask": {"control": set(), "too_many": {"bytes", "finite", "error"}},
    "total": {"control": set(), "by_two": set()},
}


@pytest.mark.parametrize("operator", EXPECTED)
def test_right_variants_pass_and_wrong_ones_fail(operator: str, audit: Callable[..., Ran], tmp_path: Path) -> None:
    ran = audit(PROJECT, "run", "--shape", operator, "--json", "--out", str(tmp_path))
    failed: dict[str, set[str]] = defaultdict(set)
    for result in ran.results():
        failed[result["variant"]] |= {result["check"].partition(":")[0]} if result["verdict"] == "fail" else set()
    assert dict(failed) == EXPECTED[operator]
    assert audit(PROJECT, "verify", ran.json["evidence"]).code == 0


@pytest.mark.parametrize("tool", ["initcheck", "racecheck"])
def test_a_sanitizer_takes_a_buffer_changed_in_place_as_written(
    tool: str, audit: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = audit(
        PROJECT, "sanitize", "--shape", "accumulate", "--variant", "control", "--tool", tool, "--out", str(tmp_path)
    )
    assert ran.code == 0, ran.out + ran.err


def test_every_step_begins_with_the_contents_from_the_inputs(tmp_path: Path) -> None:
    from audit import bundle

    operator = find_project(PROJECT).operators["accumulate"]
    case = operator.case(find_project(PROJECT).shape("accumulate")[1], {})
    inputs, _ = case_inputs(operator, case, None)
    changed = {"y": np.ones(case.n)}
    written = bundle.write_bundle(
        tmp_path, operator, operator.variant("control"), case, inputs, {"live": {}, "other": changed, "restore": {}}
    )
    live, other, restore = (tmp_path / step.loads["y"] for step in written.steps)
    assert live.read_bytes() == restore.read_bytes() == np.asarray(inputs["y"], np.float32).tobytes()
    assert other.read_bytes() == np.ones(case.n, np.float32).tobytes()
    assert all("y" not in step.poison for step in written.steps)
    slot = written.slot("y")
    assert arena.read_slot(tmp_path / slot.file, slot).data.tobytes() == live.read_bytes()


def test_contents_for_a_buffer_that_is_only_written_are_refused() -> None:
    project = find_project(PROJECT)
    operator = project.operators["quantise"]
    case = operator.case(project.shape("quantise")[1], {})
    wrong = type(operator)(**{**vars(operator), "inputs": lambda c, _rng: {"x": np.ones(c.n), "y": np.ones(c.n)}})
    with pytest.raises(ProjectError, match="give a buffer that has contents before role='inout'"):
        case_inputs(wrong, case, None)
