"""Two launch arguments of one type differ in some case of a default plan, or the run says which do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from audit import bundle
from audit import plan as planning
from audit.argument_pairs import LaunchArguments, indistinguishable, launch_arguments
from audit.arguments import Argument
from audit.inputs import case_inputs
from audit.launch_record import launch_records
from audit.plan import Plan, Selection
from audit.project import Project, find_project
from audit.records.kind import PLAN
from audit.records.run import KIND
from audit.report.conditions import run_conditions
from audit.run import run

from ..conftest import ROOT, Ran
from .projects import audit as audit_here
from .projects import make

SHAPES = [f"q{rows}" for rows in range(1, 9)]
SMALL = 129  # tokens: the pairs differ in cases that cost little


def planned(project: Project, shape: str, *variants: str) -> Plan:
    return planning.make_plan(project, shape, Selection(variants=variants), arch="sm_90", time_limit=60)


def of_plan(project: Project, plan: Plan) -> list[LaunchArguments]:
    """The arguments of all launches in the plan's small generated cases."""
    operator = project.operators[plan.operator]
    found: list[LaunchArguments] = []
    for case in plan.cases:
        if case.context > SMALL or case.capture or case.probe:
            continue
        inputs, _ = case_inputs(operator, case, None)
        buffers = tuple(operator.buffers(case))
        for variant in map(operator.variant, (one.name for one in plan.variants)):
            declared = variant.launches(case)
            resolved = [bundle.resolve_launch(launch, variant, buffers, inputs) for launch in declared]
            found += launch_arguments(variant.name, launch_records(declared, resolved))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_differs_in_the_default_plan(shape: str) -> None:
    project = find_project(ROOT)
    names = [variant.name for variant in project.shape(shape)[0].variants]  # the closed ones too
    launches = of_plan(project, planned(project, shape, *names))
    assert len({launch.variant for launch in launches}) == len(names)
    assert indistinguishable(launches) == ()


def test_without_the_padded_layout_the_strides_of_k_and_v_are_one() -> None:
    project = find_project(ROOT)
    plan = planned(project, "q6", "control")
    splits = [launch for launch in of_plan(project, plan) if launch.kernel == "grouped_control_splits"]
    launches = [launch for launch in splits if launch.values[7].bits == launch.values[9].bits]
    assert list(indistinguishable(launches)) == [
        "control: grouped_control_splits: arguments 8 and 10 (i64)",
        "control: grouped_control_splits: arguments 9 and 11 (i64)",
    ]


def pair(first: Argument, second: Argument, *names: str) -> LaunchArguments:
    return LaunchArguments("v", "k", names or ("", ""), (first, second))


def number(value: int, kind: str = "i32") -> Argument:
    return Argument(kind, bits=value.to_bytes(4, "little").hex())


@pytest.mark.parametrize(
    ("launches", "told"),
    [
        ([pair(number(7), number(7))], "v: k: arguments 1 and 2 (i32)"),
        ([pair(number(7), number(7)), pair(number(7), number(8))], None),
        ([pair(number(7), number(7, "u32"))], None),
        ([pair(number(7), number(7), "n", "n")], None),
        ([pair(number(7), number(7), "k_scale", "v_scale")], "v: k: arguments 1 and 2 (i32)"),
        ([pair(Argument("pointer", "x"), Argument("pointer", "y"), "x", "y")], None),
        ([pair(Argument("pointer", "x"), Argument("pointer", "x"), "x", "x")], None),
        ([pair(Argument("pointer", "x", 4), Argument("pointer", "x", 4))], "v: k: arguments 1 and 2 (pointers)"),
        ([pair(Argument("pointer", "x", 4), Argument("pointer", "x", 8))], None),
    ],
)
def test_what_a_pair_is(launches: list[LaunchArguments], told: str | None) -> None:
    assert indistinguishable(launches) == ((told,) if told else ())


def test_two_kernels_of_a_variant_do_not_speak_for_each_other() -> None:
    apart = LaunchArguments("v", "merge", ("", ""), (number(1), number(2)))
    assert indistinguishable([pair(number(7), number(7)), apart]) == ("v: k: arguments 1 and 2 (i32)",)
    other = LaunchArguments("w", "k", ("", ""), (number(1), number(2)))
    assert indistinguishable([pair(number(7), number(7)), other]) == ("v: k: arguments 1 and 2 (i32)",)


def with_argument(folder: Path, argument: str, default: int = 40) -> Path:
    """The small project, whose kernels take another `int` behind n; its axis m has this default."""
    project = make(folder, "f32", "")
    declaration = project / "kernels/twice.py"
    text = declaration.read_text().replace('"y", c.n)', f'"y", c.n, {argument})')
    declaration.write_text(text.replace('Axis("n", 40)', f'Axis("n", 40), Axis("m", {default})'))
    for source in (project / "kernels").glob("*.cu"):
        source.write_text(source.read_text().replace("int n)", "int n, int m)"))
    return project


TOLD = ("control: control: arguments 4 and 5 (i32)", "fast: fast: arguments 4 and 5 (i32)")


@pytest.mark.parametrize(("default", "told"), [(40, TOLD), (41, ())])
def test_a_default_plan_in_which_two_are_equal_is_inconclusive(
    tmp_path: Path, default: int, told: tuple[str, ...]
) -> None:
    record = audit_here(with_argument(tmp_path / "project", "c.m", default))
    assert record.summary.indistinguishable == told
    assert record.summary.verdict == ("inconclusive" if told else "pass")
    assert (record.summary.passed, record.summary.inconclusive) == (2, 0)
    assert list(KIND.disagrees(record, {PLAN: msgspec.json.encode(record.plan)})) == []
    (condition,) = [one for one in run_conditions(record) if one.name == "launch arguments"]
    assert condition.state == record.summary.verdict
    assert all(pair in condition.outcome for pair in told)


def test_a_narrowed_plan_makes_no_claim(tmp_path: Path) -> None:
    record = audit_here(with_argument(tmp_path / "project", "c.m"), Selection(seeds=(2,)))
    assert (record.summary.verdict, record.summary.indistinguishable) == ("pass", ())
    assert "launch arguments" not in {one.name for one in run_conditions(record)}


def test_the_command_says_which_and_what_to_do(tmp_path: Path, audit: Callable[..., Ran]) -> None:
    ran = audit(with_argument(tmp_path / "project", "c.m"), "run")
    assert ran.code == 3
    assert "exchanging them changes nothing in any case of this plan; add a case in which they differ" in ran.out
    assert all(pair in ran.out for pair in TOLD)


def test_a_record_that_hides_them_contradicts_itself(tmp_path: Path) -> None:
    record = audit_here(with_argument(tmp_path / "project", "c.m"))
    for hidden, without_launches, words in [
        ({"verdict": "pass"}, False, "summary: verdict is recorded as 'pass'"),
        ({"verdict": "pass", "indistinguishable": ()}, False, "summary: indistinguishable is recorded as ()"),
        ({"verdict": "pass", "indistinguishable": ()}, True, "expected launches of control, fast, but got those of"),
    ]:
        cases = [msgspec.structs.replace(one, launches={}) if without_launches else one for one in record.cases]
        summary = msgspec.structs.replace(record.summary, **hidden)
        changed = msgspec.structs.replace(record, summary=summary, cases=tuple(cases))
        said = list(KIND.disagrees(changed, {PLAN: msgspec.json.encode(record.plan)}))
        assert any(words in each for each in said), said


def test_strides_exchanged_in_the_launch_show_in_the_padded_case(own_project: Path) -> None:
    """Only those of the page, and only in one variant; where K and V have equal strides it passes."""
    source = own_project / "kernels/grouped/launches.py"
    text = source.read_text()
    swapped = 'k_page, k_token, v_page, v_token = strides(case)\n        if name == "shared_kv":\n'
    swapped += "            k_page, v_page = v_page, k_page\n"
    text = text.replace("        inputs = (", f"        {swapped}        inputs = (").replace(
        "*strides(case)", "k_page, k_token, v_page, v_token"
    )
    source.write_text(text)
    project = find_project(own_project)
    small = {"context": [SMALL], "heads": [3], "dim": [64]}
    verdicts = {}
    for layout in ("contiguous", "padded"):
        selection = Selection(axes={**small, "layout": [layout]}, variants=["shared_kv"])
        plan = planning.make_plan(project, "q2", selection, arch="sm_90", time_limit=60)
        record = run(project, plan, own_project / "runs", "test")[0]
        verdicts[layout] = {one.variant: one.verdict for one in record.audits}
    assert verdicts["contiguous"] == {"vector_loads": "pass", "shared_kv": "pass"}
    assert verdicts["padded"] == {"vector_loads": "pass", "shared_kv": "fail"}


@pytest.mark.parametrize(("default", "code"), [(40, 3), (41, 0)])
def test_the_gate_asks_for_it(tmp_path: Path, audit: Callable[..., Ran], default: int, code: int) -> None:
    project = with_argument(tmp_path / "project", "c.m", default)
    rule = '[[tool.kernel-audit.gate.everyday.audits]]\nshapes = ["twice"]\nstatuses = ["experimental"]\n'
    policy = '[tool.kernel-audit.gate.everyday]\ndefaults = ["experimental"]\n'
    (project / "pyproject.toml").write_text(f"[tool.kernel-audit]\n\n{policy}\n{rule}")
    ran = audit(project, "gate")
    assert ran.code == code, ran.out
    assert ("arguments 4 and 5 (i32)" in ran.out) == bool(code)
