"""Plans: written lists, narrowed and added to by options, refused where they make no sense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from audit import plan as planning
from audit.errors import PlanError
from audit.plan import Plan, Selection
from audit.project import find_project

ROOT = Path(__file__).resolve().parents[1]


QUIET = ("layout", "placement", "q_offset", "base", "lengths")


def make(shape: str, **options: object) -> Plan:
    return planning.make_plan(find_project(ROOT), shape, Selection(**options), arch="sm_90", time_limit=60)  # type: ignore[arg-type]


def contexts(plan: Plan) -> list[int]:
    return [case.context for case in plan.cases]


def test_default_plan_of_q6_is_the_written_list() -> None:
    plan = make("q6")
    plain = [case for case in plan.cases if not (case.capture or case.probe or case.unnamed != QUIET)]
    assert [(case.context, case.page) for case in plain] == [
        *((context, 16) for context in (1, 31, 32, 33, 63, 64, 65, 128, 129)),
        (1649, 1648), (3297, 3296), (5057, 1648), (8197, 3296), (24577, 3296),
    ]  # fmt: skip
    assert [case.context for case in plain if case.first_step_only] == [5057, 8197, 24577]
    assert len([case for case in plan.cases if case.capture]) == 9
    assert len({case.probe for case in plan.cases if case.probe}) == 10
    assert len([case for case in plan.cases if case.unnamed != QUIET]) == 4
    assert plan.audits == 37 * 7
    assert "live row lengths 124..129" in plan.described[plain[8].id]
    assert not plan.pruned


@pytest.mark.parametrize("shape", [f"q{rows}" for rows in range(1, 9)])
def test_every_shape_has_a_plan_with_captures(shape: str) -> None:
    plan = make(shape)
    assert len(plan.cases) >= 25
    assert len([case for case in plan.cases if case.capture]) == 9
    assert all(case.rows == int(shape[1:]) for case in plan.cases)


def test_full_adds_the_longest_contexts() -> None:
    assert set(contexts(make("q8", full=True))) - set(contexts(make("q8"))) == {
        *(32_768, 131_072, 261_888, 262_152),
    }


def test_an_architecture_says_how_far_its_model_is_to_be_trusted() -> None:
    assert "measured on an H200" in make("q6").tensor_cores
    older = planning.make_plan(find_project(ROOT), "q6", Selection(), arch="sm_70", time_limit=60)
    assert older.tensor_cores == "published model, not measured"
    with pytest.raises(PlanError, match="--arch: expected one of"):
        planning.make_plan(find_project(ROOT), "q6", Selection(), arch="sm_61", time_limit=60)


def test_a_context_of_the_plan_narrows_and_keeps_its_page() -> None:
    plan = make("q6", axes={"context": [1649]})
    assert [(case.context, case.page, case.capture) for case in plan.cases] == [(1649, 1648, None)]
    assert plan.pruned


def test_a_context_outside_the_plan_adds_a_case() -> None:
    assert contexts(make("q6", axes={"context": [33, 77]})) == [33, 77]


def test_a_context_of_the_full_plan_is_taken_from_there() -> None:
    (case,) = make("q8", axes={"context": [261_888]}).cases
    assert (case.page, case.first_step_only) == (1648, True)


def test_axes_combine() -> None:
    plan = make("q6", axes={"context": [129], "heads": [3], "dim": [64]})
    assert [(case.context, case.heads, case.dim) for case in plan.cases] == [(129, 3, 64)]


def test_seeds_multiply_the_list() -> None:
    assert len(make("q3", seeds=(1, 2)).cases) == 2 * 18


def test_a_variant_brings_its_direct_parent_first() -> None:
    def planned(*names: str) -> list[tuple[str, str | None]]:
        return [(variant.name, variant.parent) for variant in make("q6", variants=names).variants]

    assert planned("shared_kv") == [("vector_loads", None), ("shared_kv", "vector_loads")]
    assert planned("control") == [("control", None)]
    assert [name for name, _ in planned()] == [
        "control", "vector_loads", "shared_kv", "page_specialized", "ordered_qk_pv", "visible_tile", "piped_roles"
    ]  # fmt: skip


def test_what_is_left_out_is_passed_over_by_its_children() -> None:
    """warp_roles stands between direct_fragments and rolled_steps."""
    operator = find_project(ROOT).operators["grouped"]
    left = [variant for variant in operator.variants if variant.name != "warp_roles"]
    left.append(replace(operator.variant("warp_roles"), status="closed"))
    narrowed = replace(operator, variants=left)
    for full, parent in ((operator, "warp_roles"), (narrowed, "direct_fragments")):
        (planned,) = [one for one in planning.planned_variants(full, (), full=True) if one.name == "rolled_steps"]
        assert planned.parent == parent


def test_captures_and_probes_alone_and_none() -> None:
    only = make("q6", captures=["smollm2-135m/layer18/rank1"])
    assert [case.capture for case in only.cases] == ["smollm2-135m/layer18/rank1"]
    assert (only.cases[0].heads, only.cases[0].dim, only.cases[0].rows) == (3, 64, 6)
    assert all(case.capture is None for case in make("q6", captures=()).cases)
    assert [case.probe for case in make("q6", probes=["tiles"]).cases] == ["tiles"]
    assert all(case.probe is None for case in make("q6", probes=()).cases)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axes": {"context": [262_153]}}, "at most 262,152, but got 262153"),
        ({"axes": {"context": [0]}}, "at least 1, but got 0"),
        ({"axes": {"rows": [9]}}, "shape q6 means rows=6, but got rows=9"),
        ({"axes": {"page": [17]}}, "axis page: expected a multiple of 16, but got 17"),
        ({"axes": {"colour": [1]}}, "expected an axis of"),
        ({"variants": ["fastest"]}, r"expected a variant of \['control', 'vector_loads'"),
        ({"probes": ["nothing"]}, r"expected a probe of \['uniform'"),
        ({"captures": ["smollm2-135m/layer7/rank0"]}, "--capture: expected one of"),
    ],
)
def test_what_cannot_be_run_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make("q6", **options)
