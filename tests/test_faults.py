"""Every planted fault of fixtures/faults is caught by the check that it names, and its clean twin passes.

A run tries a third of the catalogue, another one each day; `pytest --full` tries all.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from audit import faults
from audit.errors import ProjectError
from audit.faults import Fault, Trial
from audit.project import find_project

from .conftest import ROOT, full_run

CATALOGUE = faults.load_faults(ROOT / "fixtures/faults")
TODAY = CATALOGUE if full_run() else faults.third(CATALOGUE, int(time.time() // 86_400))


def test_three_turns_try_the_whole_catalogue() -> None:
    names = [fault.name for turn in range(3) for fault in faults.third(CATALOGUE, turn)]
    assert sorted(names) == [fault.name for fault in CATALOGUE]


@pytest.fixture(scope="module")
def trials() -> dict[str, Trial]:
    """Today's faults together, so that those with the same cases share their clean twin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audit.case.expose", lambda _: ())  # what a plan cannot tell is no part of a trial
        return {trial.fault.name: trial for trial in faults.try_all(find_project(ROOT), TODAY)}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [fault.name for fault in TODAY])
def test_fault_is_caught(name: str, trials: dict[str, Trial]) -> None:
    trial = trials[name]
    assert trial.twin == "pass"
    assert trial.caught, faults.trial_matrix([trial])


HARMLESS = Fault(
    "harmless", "a change without effect", "none", "bytes", "kernels/fast.cu", "float sum = 0.0f;",
    "float sum = +0.0f;", "softmax", "fast", {"n": (33,)},
)  # fmt: skip


def test_what_no_check_sees_is_not_called_caught(softmax_project: Path) -> None:
    (trial,) = faults.try_all(find_project(softmax_project), [HARMLESS])
    assert (trial.caught, trial.failed, trial.twin) == (False, {}, "pass")
    assert "NOT CAUGHT by bytes" in faults.trial_matrix([trial])


def test_another_check_than_the_named_one_does_not_count(softmax_project: Path) -> None:
    wrong = msgspec.structs.replace(HARMLESS, find="/ total", replace="/ (1.0f + total)", check="guards")
    (trial,) = faults.try_all(find_project(softmax_project), [wrong])
    assert not trial.caught
    assert {"bytes", "error"} <= set(trial.failed)


def test_a_twin_that_fails_spoils_the_trial(softmax_project: Path) -> None:
    wrong = msgspec.structs.replace(HARMLESS, file="kernels/wrong.cu", variant="wrong")
    (trial,) = faults.try_all(find_project(softmax_project), [wrong])
    assert (trial.caught, trial.twin) == (False, "fail")
    assert "TWIN NOT CLEAN" in faults.trial_matrix([trial])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"find": "not there"}, "exactly once in kernels/fast.cu, but found it 0 times"),
        ({"find": "float"}, "exactly once in kernels/fast.cu, but found it"),
        ({"file": "../pyproject.toml"}, "expected a file of the project"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_an_error(softmax_project: Path, change: dict[str, str], words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        faults.try_all(find_project(softmax_project), [msgspec.structs.replace(HARMLESS, **change)])


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("what = 'x'\n")
    with pytest.raises(ProjectError, match=r"x\.toml: Object missing required field `kind`"):
        faults.load_faults(tmp_path)
