"""Plans: written lists, narrowed and added to by options, refused where they make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import plan as planning
from audit.errors import PlanError
from audit.plan import Plan, Selection
from audit.project import find

ROOT = Path(__file__).resolve().parents[1]


def make(shape: str, **options: object) -> Plan:
    return planning.make(find(ROOT), shape, Selection(**options), arch="sm_90", time_limit=60)  # type: ignore[arg-type]


def contexts(plan: Plan) -> list[int]:
    return [case.context for case in plan.cases]


def test_default_plan_of_q6_is_the_written_list() -> None:
    plan = make("q6")
    generated = [case for case in plan.cases if case.capture is None]
    assert [(case.context, case.page) for case in generated] == [
        (1, 16), (33, 16), (64, 16), (129, 16), (1649, 1648), (3297, 3296)
    ]  # fmt: skip
    assert len([case for case in plan.cases if case.capture]) == 9
    assert [variant.name for variant in plan.variants] == ["control", "shared_kv"]
    assert plan.audits == 30
    assert not plan.pruned


def test_a_context_of_the_plan_narrows_and_keeps_its_page() -> None:
    plan = make("q6", axes={"context": [1649]})
    assert [(case.context, case.page, case.capture) for case in plan.cases] == [(1649, 1648, None)]
    assert plan.pruned


def test_a_context_outside_the_plan_adds_a_case() -> None:
    assert contexts(make("q6", axes={"context": [33, 77]})) == [33, 77]


def test_axes_combine() -> None:
    plan = make("q6", axes={"context": [129], "heads": [3], "dim": [64]})
    assert [(case.context, case.heads, case.dim) for case in plan.cases] == [(129, 3, 64)]


def test_seeds_multiply_the_list() -> None:
    assert len(make("q3", seeds=(1, 2)).cases) == 6


def test_a_variant_brings_its_parents_first() -> None:
    assert [variant.name for variant in make("q6", variants=["shared_kv"]).variants] == [
        "control",
        "shared_kv",
    ]
    assert [variant.name for variant in make("q6", variants=["control"]).variants] == ["control"]


def test_captures_alone_and_none() -> None:
    only = make("q6", captures=["smollm2-135m/layer18/rank1"])
    assert [case.capture for case in only.cases] == ["smollm2-135m/layer18/rank1"]
    assert (only.cases[0].heads, only.cases[0].dim, only.cases[0].rows) == (3, 64, 6)
    assert all(case.capture is None for case in make("q6", captures=()).cases)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axes": {"context": [262_153]}}, "at most 262,152, but got 262153"),
        ({"axes": {"context": [0]}}, "at least 1, but got 0"),
        ({"axes": {"rows": [9]}}, "shape q6 means rows=6, but got rows=9"),
        ({"axes": {"page": [17]}}, "axis page: expected a multiple of 16, but got 17"),
        ({"axes": {"colour": [1]}}, "expected an axis of"),
        ({"variants": ["fastest"]}, r"expected a variant of \['control', 'shared_kv'\]"),
        ({"captures": ["smollm2-135m/layer7/rank0"]}, "--capture: expected one of"),
    ],
)
def test_what_cannot_be_run_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make("q6", **options)
