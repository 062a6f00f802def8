"""Closed grouped variants: the bytes of their parents, except `fp64_sum`, and never run unless named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit import plan as planning
from audit.plan import Selection
from audit.project import find_project
from audit.spec import Variant

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
CLOSED = {variant.name: variant for variant in GROUPED.variants if variant.status == "closed"}
SAME_BYTES = ("n64", "register_softmax", "m8n32_qk", "operand_rotation")
SMALL = {"heads": [3], "dim": [64]}
SPLITS_OF_TWO_AND_THREE = 5121
"""The smallest context at which a split with an odd number of tiles is followed by another."""


def words(shape: str, variants: tuple[str, ...], **axes: list[int]) -> list[str]:
    named = [word for variant in variants for word in ("--variant", variant)]
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", *named, *narrowed]


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}),
        pytest.param("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, marks=pytest.mark.full),
    ],
    ids=["3 heads", "6 heads"],
)
def test_the_bytes_are_the_parents(audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]]) -> None:
    ran = audit(ROOT, *words(shape, SAME_BYTES, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    compared = {result["variant"] for result in ran.results() if result["check"] == "bytes"}
    assert compared >= set(SAME_BYTES)


def test_a_panel_of_n64_ends_with_its_split(audit: Callable, tmp_path: Path) -> None:
    axes = {**SMALL, "context": [SPLITS_OF_TWO_AND_THREE]}
    ran = audit(ROOT, *words("q2", ("n64",), **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert "n64" in {result["variant"] for result in ran.results() if result["check"] == "bytes"}


def test_fp64_sum_has_other_bytes_and_no_other_finding(audit: Callable, tmp_path: Path) -> None:
    ran = audit(ROOT, *words("q3", ("fp64_sum",), heads=[6], dim=[256], context=[65]), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    found = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] != "pass"}
    expected = {"bytes", "error:contract_workspace", "error:contract_out"}
    assert ("fp64_sum", "bytes") in found
    assert found <= {("fp64_sum", check) for check in expected}
    bounds = {result["check"] for result in ran.results() if result["variant"] == "fp64_sum"}
    assert bounds >= {"error:precast", "error:partial", "error:lse", "error:final", "error:merge"}


@pytest.mark.parametrize(
    ("variant", "file", "find", "replace", "axes"),
    [
        ("n64", "staged/splits.cuh", "panel + i < tiles.end ?", "true ?",
         {**SMALL, "context": [SPLITS_OF_TWO_AND_THREE]}),
        ("register_softmax", "closed/register_rows.cuh",
         "factors.x[i] = of_slot(rescale, row_tile * kTileRows, row_of[i]);",
         "factors.x[i] = of_slot(rescale, row_tile * kTileRows, i);", {**SMALL, "context": [65]}),
        pytest.param(
            "m8n32_qk", "staged/products.cuh", "return m.k[token];", "return m.k[token + (Slots < 16)];",
            {**SMALL, "context": [33]}, marks=pytest.mark.full),
        pytest.param(
            "operand_rotation", "closed/operand_rotation.cu", "wmma::mem_col_major", "wmma::mem_row_major",
            {**SMALL, "context": [33]}, marks=pytest.mark.full),
    ],
    ids=SAME_BYTES,
)  # fmt: skip
def test_a_fault_in_what_a_variant_changes_shows_in_its_bytes(
    audit: Callable,
    own_project: Path,
    tmp_path: Path,
    variant: str,
    file: str,
    find: str,
    replace: str,
    axes: dict[str, list[int]],
) -> None:
    source = own_project / "kernels/grouped" / file
    text = source.read_text()
    assert text.count(find) == 1
    source.write_text(text.replace(find, replace))
    ran = audit(own_project, *words("q2", (variant,), **axes), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    failed = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] == "fail"}
    assert (variant, "bytes") in failed
    assert {name for name, _ in failed} == {variant}


def test_closed_variants_are_declared_with_a_reason() -> None:
    assert set(CLOSED) == {*SAME_BYTES, "fp64_sum", "lean_roles", "even_roles", "woven_steps"}
    assert all(variant.why and variant.parent and variant.evidence for variant in CLOSED.values())


@pytest.mark.parametrize("shape", [shape.name for shape in GROUPED.shapes])
@pytest.mark.parametrize("full", [False, True])
def test_no_default_plan_has_a_closed_variant(shape: str, full: bool) -> None:
    plan = planning.make_plan(find_project(ROOT), shape, Selection(full=full), arch="sm_90", time_limit=60)
    assert plan.variants
    assert all(variant.status != "closed" for variant in plan.variants)


@pytest.mark.parametrize("variant", CLOSED.values(), ids=CLOSED)
def test_the_source_states_the_shared_memory_of_its_launch(variant: Variant) -> None:
    text = (ROOT / variant.code.path).read_text()
    for heads, dim in ((6, 256), (3, 64)):
        case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
        splits = next(iter(variant.launches(case)))
        assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
