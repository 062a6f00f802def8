"""`lean_roles` and `even_roles`: their parents' bytes, and no role overtakes the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit.backends import Completed
from audit.project import find_project

from .one_block import run_one_block

ROOT = Path(__file__).resolve().parents[2]
GROUPED = find_project(ROOT).operators["grouped"]
LEAN, EVEN = "lean_roles", "even_roles"
SMALL = {"heads": [3], "dim": [64]}
LEAN_ROLES = "kernels/grouped/closed/lean_roles.cuh"
EVEN_ROLES = "kernels/grouped/closed/even_roles.cuh"
SPLITS_OF_THREE_CHUNKS = 24_577
SPLITS_OF_SIX_CHUNKS = 53_761


def words(shape: str, *more: str, **axes: list[int]) -> list[str]:
    narrowed = [word for name, values in axes.items() for value in values for word in ("--axis", f"{name}={value}")]
    return ["run", "--shape", shape, "--json", "--capture", "none", *narrowed, *more]


@pytest.mark.full  # closed variants
@pytest.mark.parametrize(
    ("shape", "axes", "more"),
    [
        ("q3", {**SMALL, "context": [1, 65, 129]}, ()),
        ("q8", {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [3296]}, ()),
        ("q6", {"heads": [6], "dim": [256], "context": [33], "page": [1648]}, ()),
        ("q2", {**SMALL, "context": [129], "layout": ["padded"], "base": [8]}, ()),
        ("q2", {**SMALL, "context": [129]}, ("--arch", "sm_80")),
    ],
    ids=["3 heads", "several chunks", "a padded half", "8-byte loads", "steps of 8"],
)
def test_the_bytes_are_the_parents(
    audit: Callable, tmp_path: Path, shape: str, axes: dict[str, list[int]], more: tuple[str, ...]
) -> None:
    ran = audit(ROOT, *words(shape, "--variant", LEAN, "--variant", EVEN, *more, **axes), "--out", str(tmp_path))
    assert ran.code == 0, ran.out + ran.err
    assert {LEAN, EVEN} <= {result["variant"] for result in ran.results() if result["check"] == "bytes"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("variant", "source", "find", "replace", "check"),
    [
        (LEAN, LEAN_ROLES, "copies.wait<1>();  // for V", "", "repeat"),  # another schedule copies later
        (LEAN, LEAN_ROLES, "if (late) of_values = last;", "", "bytes"),
        (EVEN, EVEN_ROLES, "copies.wait<1>();", "", "bytes"),
        (EVEN, EVEN_ROLES, "copies.wait<0>();  // for V", "", "bytes"),
        (EVEN, EVEN_ROLES, "of_values = late ? address : next;", "of_values = address;", "bytes"),
    ],
    ids=[
        "V is not waited for",
        "V of another tile",
        "even: K not waited for",
        "even: V not waited for",
        "even: V of it",
    ],
)
def test_a_fault_shows(
    audit: Callable, own_project: Path, tmp_path: Path, variant: str, source: str, find: str, replace: str, check: str
) -> None:
    damage(own_project, source, find, replace)
    axes = {**SMALL, "context": [SPLITS_OF_THREE_CHUNKS], "page": [1648]}
    ran = audit(own_project, *words("q2", "--variant", variant, "--probe", "none", **axes), "--out", str(tmp_path))
    assert ran.code == 1, ran.out + ran.err
    failed = {(result["variant"], result["check"]) for result in ran.results() if result["verdict"] == "fail"}
    assert (variant, check) in failed
    assert {name for name, _ in failed} == {variant}


def damage(root: Path, source: str, find: str, replace: str) -> None:
    text = (root / source).read_text()
    assert text.count(find) == 1
    (root / source).write_text(text.replace(find, replace))


@pytest.mark.parametrize("name", [LEAN, EVEN])
def test_the_roles_do_not_race(tmp_path: Path, name: str) -> None:
    ran, _ = run_one_block(ROOT, tmp_path / "case", name, SPLITS_OF_SIX_CHUNKS)
    assert isinstance(ran.outcome, Completed), ran.log
    assert ran.log == ""


@pytest.mark.full
@pytest.mark.parametrize("name", [LEAN, EVEN])
@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("& weights = m.weights[parity].tiles[tile];", "& weights = m.weights[parity ^ 1].tiles[tile];"),
        ("2 * tile + parity :", "2 * tile :"),
    ],
    ids=["weights that are being made", "V where it is being read"],
)
def test_a_role_that_overtakes_the_other_is_a_race(
    own_project: Path, tmp_path: Path, name: str, find: str, replace: str
) -> None:
    damage(own_project, LEAN_ROLES, find, replace)
    ran, _ = run_one_block(own_project, tmp_path / "case", name, SPLITS_OF_SIX_CHUNKS)
    assert "data race" in ran.log


@pytest.mark.parametrize("name", [LEAN, EVEN])
def test_the_source_states_the_shared_memory_of_its_launch(name: str) -> None:
    variant = GROUPED.variant(name)
    text = (ROOT / variant.code.path).read_text()
    for heads, dim in ((6, 256), (3, 64)):
        case = GROUPED.case(GROUPED.shapes[-1], {"heads": heads, "dim": dim, "context": 129})
        splits = next(iter(variant.launches(case)))
        assert f"{splits.shared_bytes:,} (G={heads}, D={dim})" in text
