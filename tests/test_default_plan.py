"""The plan that a shape gets without lines of its own, and the one that `Families` stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.default_plan import declared_lines, lines, names, reduction
from audit.errors import PlanError, ProjectError
from audit.plan import Selection, make_plan
from audit.project import find_project
from audit.spec import Axis, Buffer, Families, Launch, Line, Operator, Shape, Source, Variant

from .conftest import Ran

SHAPE = Shape("double")
AXIS = Axis("n", 100)


def operator(axis: Axis = AXIS, plan: Mapping[str, Sequence[Line]] | Families | None = None, **fields: Any) -> Operator:
    return Operator(
        "double",
        axes=[axis],
        buffers=lambda _case: [Buffer("x", "f32", "n", "in"), Buffer("y", "f32", "n", "out")],
        inputs=lambda case, rng: {"x": rng.normal(size=case.n)},
        variants=[
            Variant("control", Source("double.cu"), lambda case: [Launch("k", (1,), (case.n,), args=("x", "y"))])
        ],
        plan={} if plan is None else plan,
        **fields,
    )


def sizes(axis: Axis, plan: Families | None = None) -> list[object]:
    return [line.axes["n"] for line in lines(operator(axis, plan), SHAPE) if line.axes]


def test_an_axis_without_a_range_has_one_case_with_every_family() -> None:
    (line,) = lines(operator(), SHAPE)
    assert line.families == names(Families())
    assert {"negative", "ties", "seed2", "seed3", "huge"} <= {*line.families}
    assert not {"ramp", "masked"} & {*line.families}


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Axis("n", 100, at_least=1), [1, 33, 257]),
        (Axis("n", 100, at_least=33, at_most=300), [33, 257, 65]),
        (Axis("n", 64, multiple_of=32, at_least=32), [32, 1056, 8224]),
        (Axis("n", 100, at_least=100, at_most=100), []),
        (Axis("n", 64, values=(32, 64, 128)), [128, 32]),
    ],
)
def test_an_axis_with_a_range_adds_few_sizes_that_it_permits(axis: Axis, expected: list[int]) -> None:
    found = sizes(axis)
    assert found == expected
    for value in found:
        axis.admit(value)  # type: ignore[arg-type]


def test_families_says_which_sizes() -> None:
    assert sizes(Axis("n", 100, at_least=1), Families(sizes=False)) == []
    assert sizes(AXIS, Families(sizes={"n": (1, 2, 100, 7)})) == [1, 2, 7]
    assert sizes(AXIS, Families()) == []


def test_declared_lines_have_the_families_that_they_name() -> None:
    assert declared_lines(operator(), SHAPE) is None
    assert declared_lines(operator(plan={"double": (Line(),)}), SHAPE) == (Line(),)
    assert names(Families(names=("zeros",), seeds=2, without=("zeros",))) == ("seed2",)


def test_a_large_case_runs_fewer_and_says_so() -> None:
    large = operator(Axis("n", 1 << 22))
    (line,) = lines(large, SHAPE)
    assert len(line.families) == 2
    assert "runs 2 of 11 input families" in reduction(large, large.case(SHAPE, {}))
    assert reduction(operator(), operator().case(SHAPE, {})) == ""
    assert lines(operator(Axis("n", 1 << 30)), SHAPE) == [Line()]


def test_a_size_at_which_the_declaration_raises_is_left_out() -> None:
    def launches(case: Any) -> list[Launch]:
        return [Launch("k", (1,), (128 // (case.n // 32),), args=("x", "y"))]  # raises below 32

    fragile = operator(Axis("n", 64, at_least=1))
    variants = [replace(fragile.variants[0], launches=launches)]
    assert [line.axes["n"] for line in lines(replace(fragile, variants=variants), SHAPE)[1:]] == [33, 257, 1025]


def declared(folder: Path, find: str, put: str) -> Path:
    source = folder / "kernels/softmax.py"
    assert find in source.read_text()
    source.write_text(source.read_text().replace(find, put))
    return folder


def softmax(folder: Path, plan: str) -> Path:
    text = (folder / "kernels/softmax.py").read_text()
    (line,) = [line for line in text.splitlines() if line.strip().startswith("plan=")]
    return declared(folder, line, f"    plan={plan},")


def test_the_options_choose_families(softmax_project: Path) -> None:
    project = find_project(softmax(softmax_project, "{}"))

    def families(selection: Selection) -> set[tuple[str, ...]]:
        plan = make_plan(project, "softmax", selection, arch="sm_90", time_limit=60)
        return {case.families for case in plan.cases}

    assert families(Selection(families=("ties", "ties", "masked"))) == {("ties", "masked")}
    assert families(Selection(families=())) == {()}
    assert families(Selection({"n": [77]})) == {names(Families())}
    with pytest.raises(PlanError, match=r"--family: expected one of negative, .*'nagative'"):
        families(Selection(families=("nagative",)))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ('Families(names=("nagative",))', "plan.names: expected input families: negative"),
        ("Families(seeds=0)", "plan.seeds: expected an integer from 1 to 9999"),
        ('Families(sizes={"m": (1,)})', r"plan.sizes: expected an axis of 'rows', 'n', but got 'm'"),
        ('{"": [Line(families=("nagative",))]}', "families: expected input families"),
    ],
)
def test_a_declaration_of_families_is_checked(plan: str, message: str, softmax_project: Path) -> None:
    text = softmax(softmax_project, plan) / "kernels/softmax.py"
    text.write_text("from audit import Families, Line\n" + text.read_text())
    with pytest.raises(ProjectError, match=message):
        find_project(softmax_project).operators.values()


def test_a_run_counts_cases_and_families(softmax_project: Path, audit: Callable[..., Ran]) -> None:
    softmax(softmax_project, "{}")
    options = ("run", "--shape", "softmax", "--variant", "control", "--axis", "n=33")
    both = audit(softmax_project, *options, "--family", "ties", "--family", "zeros")
    assert "s; 1 case, 2 input families\n" in both.out
    assert "famil" not in audit(softmax_project, *options, "--family", "none").out
    ran = audit(softmax_project, *options, "--family", "ties", "--json")
    assert (ran.json["cases"], ran.json["families"]) == (1, ["ties"])
    assert audit(softmax_project, "verify", ran.json["evidence"]).code == 0


def test_the_inputs_of_a_family_are_what_its_buffer_holds() -> None:
    from audit.inputs import case_inputs, family_steps

    double = operator()
    case = replace_families(double, ("negative", "seed2", "masked", "huge"))
    _, steps = case_inputs(double, case, None)
    found, left_out = family_steps(double, case, steps)
    assert [*found] == ["negative", "seed2", "masked", "huge"]
    assert not left_out
    negative = np.asarray(found["negative"]["x"])
    assert negative.dtype == np.float32
    assert (negative <= 0).all()
    assert found["seed2"]["x"] is not steps["live"]["x"]


def replace_families(double: Operator, families: tuple[str, ...]) -> Any:
    import msgspec

    return msgspec.structs.replace(double.case(SHAPE, {}, seed=1), families=families)
