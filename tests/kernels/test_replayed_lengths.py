"""Replayed lengths: a graph captured at 128 tokens runs at 127, 129 and 4,096 tokens in the same storage."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audit import plan as planning
from audit.errors import PlanError
from audit.plan import Selection
from audit.project import find_project
from audit.spec import Case

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = find_project(ROOT).operators
inputs = importlib.import_module(OPERATORS["grouped"].inputs.__module__)
storage = importlib.import_module(f"{inputs.__package__}.storage")
TOTALS = {"live": 128, "at_127": 127, "at_129": 129, "at_4096": 4096, "restore": 128}
ROWS = [1, 2, 6, 8]
SMALL = ("--axis", "heads=3", "--axis", "dim=64")
REPLAYED = ("--axis", "context=4096", "--axis", "lengths=replayed")


def case_of(rows: int, **axes: int | str) -> Case:
    """A replayed case of 3 heads and 64 dimensions, unless `axes` say otherwise."""
    operator = OPERATORS["scalar" if rows == 1 else "grouped"]
    shape = next(shape for shape in operator.shapes if shape.name == f"q{rows}")
    chosen = {"heads": 3, "dim": 64, "context": 4096, "page": 1648, "lengths": "replayed", **axes}
    return operator.case(shape, chosen, seed=1)


@pytest.mark.parametrize("rows", ROWS)
def test_only_lengths_change_and_the_first_are_those_that_are_captured(rows: int) -> None:
    case = case_of(rows)
    operator = OPERATORS[case.operator]
    given = operator.inputs(case, case.rng())
    steps = {name: {**given, **change} for name, change in operator.steps(case, given).items()}
    assert list(steps) == list(TOTALS)
    np.testing.assert_array_equal(given["lengths"], np.arange(129 - rows, 129))
    for name, step in steps.items():
        lengths = np.asarray(step["lengths"])
        assert lengths.dtype == np.int32
        np.testing.assert_array_equal(lengths, np.arange(TOTALS[name] - rows + 1, TOTALS[name] + 1))
        assert {key for key, value in step.items() if value is not given[key]} <= {"q", "lengths"}
        np.testing.assert_array_equal(step["q"], given["q"])  # no row is empty, so none is NaN
        operator.admit_inputs(case, step)


@pytest.mark.parametrize("rows", ROWS)
def test_tokens_past_a_step_are_real_ones(rows: int) -> None:
    case = case_of(rows)
    given = OPERATORS[case.operator].inputs(case, case.rng())
    assert np.asarray(given["table"]).shape == (1, 3)
    for view in storage.views(case, given):
        tokens = view[given["table"][0]].reshape(-1, 64)
        assert (tokens[:4096] & 0x7F != storage.E4M3_NAN).all()
        assert (tokens[4096:] == storage.E4M3_NAN).all()


@pytest.mark.parametrize(("rows", "written"), [(6, (1, 1, 3, 64)), (1, (1, 1, 1, 4))])
def test_what_must_be_written_follows_the_lengths(rows: int, written: tuple[int, ...]) -> None:
    case = case_of(rows)
    operator = OPERATORS[case.operator]
    given = operator.inputs(case, case.rng())
    steps = [{**given, **change} for change in operator.steps(case, given).values()]
    for step, parts in zip(steps, (*written, written[0]), strict=True):
        mask = operator.written(case, step)["partial"]
        assert np.count_nonzero(mask) == parts * (rows if case.operator == "grouped" else 1)


def test_names_and_inputs_of_live_cases_stay_as_they_were() -> None:
    case = case_of(6, lengths="live", context=129, page=16)
    assert case.id == "q6/seed1/rows=6,heads=3,dim=64,context=129,page=16"
    assert case_of(6).id == "q6/seed1/rows=6,heads=3,dim=64,context=4096,page=1648,lengths=replayed"


@pytest.mark.parametrize("rows", ROWS)
def test_another_context_is_refused(rows: int) -> None:
    words = "expected context=4096, but got context=4097"
    case = case_of(rows, context=4097)
    operator = OPERATORS[case.operator]
    with pytest.raises(PlanError, match=words):
        operator.inputs(case, case.rng())
    selection = Selection(axes={"context": [4097], "lengths": ["replayed"]})
    with pytest.raises(PlanError, match=words):
        planning.make_plan(find_project(ROOT), f"q{rows}", selection, arch="sm_90", time_limit=60)


def test_every_default_plan_has_one_and_says_what_it_is() -> None:
    for rows in range(1, 9):
        plan = planning.make_plan(find_project(ROOT), f"q{rows}", Selection(), arch="sm_90", time_limit=60)
        (case,) = [case for case in plan.cases if case.lengths == "replayed"]
        assert (case.context, case.page, case.first_step_only) == (4096, 1648, False)
        first = "128" if rows == 1 else f"{129 - rows}..128"
        assert f"live row lengths {first}, then those of 127, 129, 4096 and 128 tokens" in plan.described[case.id]


@pytest.mark.parametrize("shape", ["q1", "q2", "q8"])
def test_every_step_is_checked_with_its_own_lengths(audit: Callable, tmp_path: Path, shape: str) -> None:
    ran = audit(
        ROOT, "run", "--shape", shape, "--variant", "control", *SMALL, *REPLAYED, "--out", str(tmp_path), "--json"
    )
    assert ran.code == 0, ran.out + ran.err
    checked: dict[str, set[str]] = {}
    for result in ran.results():
        checked.setdefault(result["check"], set()).add(result["step"])
    for bound in ("contract_workspace", "merge", "precast", "partial", "lse", "final"):
        assert checked[f"error:{bound}"] == set(TOTALS)
    # beyond 300 tokens the grouped contract reference computes only chosen splits and no output
    assert checked["error:contract_out"] == set(TOTALS) - ({"at_4096"} if shape != "q1" else set())


@pytest.mark.parametrize(
    ("shape", "file", "old", "new", "checks"),
    [
        (
            "q6",
            "kernels/grouped/launches.py",
            "(_SPLITS, row_tiles(case)),",
            "(1 if case.lengths == 'replayed' else min(_SPLITS, -(-case.context // 64)), row_tiles(case)),",
            {"workspace", "error"},
        ),
        (
            "q1",
            "kernels/scalar/control.cu",
            "const int length = lengths[0];  // negative counts as 0",
            "static __device__ int kept; if (kept == 0) kept = lengths[0]; const int length = lengths[0] ? kept : 0;",
            {"workspace", "error"},
        ),
        (
            "q6",
            "kernels/grouped/control.cu",
            "for (int row = 0; row < rows; ++row) total = lengths[row] > total ? lengths[row] : total;",
            "if (lengths[rows - 1] > 0) total = 4096;",
            {"workspace"},
        ),
    ],
    ids=["grid of the captured length", "length of the first launch", "total of the context"],
)
def test_a_kernel_that_keeps_one_length_is_caught(
    audit: Callable, own_project: Path, shape: str, file: str, old: str, new: str, checks: set[str]
) -> None:
    source = own_project / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1
    source.write_text(text.replace(old, new), encoding="utf-8")
    run = ("run", "--shape", shape, "--variant", "control", *SMALL, "--json")
    if "4096" not in new:
        usual = audit(own_project, *run, "--axis", "context=129")
        assert usual.code == 0, usual.out + usual.err  # lengths of one context do not show it
    ran = audit(own_project, *run, *REPLAYED)
    assert ran.code == 1, ran.out + ran.err
    assert checks <= ran.failed()
